// Compare this page with the files that it holds, and with a folder that its reader chooses.
(() => {
  const verdict = document.getElementById("verdict"), list = document.getElementById("checks");
  const held = document.getElementById("held"), chooser = document.getElementById("folder");

  const NAMES = { checked: "Checked", unchecked: "Not checked", FAILED: "Does not agree", UNKNOWN: "Not checked" };

  function need(holds, fault) {
    if (!holds) throw new Error(fault);
  }

  // A label without spaces, which pages and tables write in different ways.
  const bare = (text) => text.replace(/[\s\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\ufffd-\uffff]/g, "");
  const isText = (shown, name) => {
    const text = bare(shown), own = name || (text === "(blank)" ? text : "");
    return own === text || (text.endsWith("…") && own.startsWith(text.slice(0, -1)));
  };
  const isLabel = (shown, label) => isText(shown, bare(verifier.said(label)));

  const REST = "(therest)"; // beside the name of a catch-all
  // The same where a catch-all is named as one: a category with such a name of its own is in quotation marks.
  const isCategory = (shown, label, isOther) => {
    const name = bare(verifier.said(label)), isMarked = name.replace(/”*$/, "").endsWith(REST);
    return isText(shown, isOther ? name + REST : isMarked ? `“${name}”` : name);
  };

  // The numbers of the counts of S: those of its file, or sums of those of a larger table.
  function* counts(folder, S) {
    const key = `${S}`;
    if (folder.tables.has(key)) return folder.tables.get(key);
    const above = [...folder.tables.values()].find((table) => S.every((i) => table.S.includes(i)));
    need(above, "a table of this page is not in the record");
    const own = { S, estimates: Array(folder.cells(S)).fill(0), lows: [], highs: [] };
    const size = above.estimates.reduce((a, x) => a + Math.abs(x), 0);
    above.estimates.forEach((x, cell) => (own.estimates[placeOf(folder, S, above.S, cell)] += x));
    own.slack = 1e-12 * (size + 1);
    own.deviations = (yield* folder.deviations(S)).map((sd) => sd * folder.spread);
    const half = own.deviations.map((sd) => 1.959963984540054 * sd);
    own.lows = own.estimates.map((x, k) => x - half[k]);
    own.highs = own.estimates.map((x, k) => x + half[k]);
    folder.tables.set(key, own);
    return own;
  }

  // The place in the table of S of a cell of a table of more attributes.
  function placeOf(folder, S, all, cell) {
    const where = new Map();
    for (const i of [...all].reverse()) {
      where.set(i, cell % folder.own[i].n);
      cell = Math.floor(cell / folder.own[i].n);
    }
    return S.reduce((place, i) => place * folder.own[i].n + where.get(i), 0);
  }

  // The cells of S with these labels, in the order of the page; a shortened label may be that of several.
  function places(folder, S, axes, labels) {
    const fits = axes.map((i, k) => {
      const { labels: own, other } = folder.own[i];
      return [...own.keys()].filter((j) => isCategory(labels[k], own[j], j === other));
    });
    return S.reduce((found, i) => {
      const next = fits[axes.indexOf(i)];
      return found.flatMap((place) => next.map((j) => place * folder.own[i].n + j));
    }, [0]);
  }

  // A number is written as it is, and the text before a reader is its rounding.
  function isWritten(data) {
    const value = Number(data.value), text = data.textContent.trim().replaceAll(",", "").replace("−", "-").replace(/^\+/, "");
    if (!/^-?\d+(\.\d+)?$/.test(text)) return verifier.isClose(Number(text), value, 1e-5);
    const digits = text.split(".")[1]?.length ?? 0;
    return Math.abs(Number(text) - value) <= 0.5 * 10 ** -digits * (1 + 1e-9) + 1e-15 * Math.abs(value);
  }

  function* compare(folder, axes, labels, inside) {
    const data = [...inside.querySelectorAll("data")], S = [...axes].sort((a, b) => a - b);
    const table = yield* counts(folder, S), where = `a number of ${labels.join(", ") || "all"}`;
    need(data.length === 3 || (data.length === 1 && inside.textContent.includes("exact")), `${where} has no interval`);
    need(data.every(isWritten), `${where} is written otherwise than it is`);
    const shown = data.map((one) => Number(one.value)), slack = table.slack ?? 0;
    const isOf = (place) => {
      const ends = [table.lows[place], table.highs[place]];
      const expected = [table.estimates[place], ...(data.length === 3 || ends[0] !== ends[1] ? ends : [])];
      return expected.length === shown.length
        && expected.every((x, k) => Math.abs(x - shown[k]) <= slack + 1e-9 * (slack && table.deviations[place]));
    };
    need(places(folder, S, axes, labels).some(isOf), `${where} is not that of the table`);
    return data.length;
  }

  // A share in per cent of the count of its group; its interval is not compared.
  function* compareShare(folder, axes, labels, cell, given) {
    const [data] = cell.querySelectorAll("data"), S = [...axes].sort((a, b) => a - b), G = [...given].sort((a, b) => a - b);
    const parts = yield* counts(folder, S), groups = yield* counts(folder, G), where = `a share of ${labels.join(", ")}`;
    const value = Number(data.value), isNone = Number.isNaN(value);
    need(isNone ? data.textContent === "none" : isWritten(data), `${where} is written otherwise than it is`);
    const isOf = (place) => {
      const group = groups.estimates[placeOf(folder, G, S, place)];
      return isNone ? group <= 0 : Math.abs(value - (100 * parts.estimates[place]) / group) <= 1e-9 * (Math.abs(value) + 1);
    };
    need(places(folder, S, axes, labels).some(isOf), `${where} is not that of the tables`);
    return 1;
  }

  // The largest or the smallest count of a table; its interval holds with those of all others.
  function* compareEnd(folder, inside) {
    const axes = folder.at(JSON.parse(inside.dataset.of)), [data] = inside.querySelectorAll("data");
    const { estimates } = yield* counts(folder, [...axes].sort((a, b) => a - b));
    const labels = [...inside.querySelectorAll("bdi")].map((own) => own.textContent), where = `the end ${labels.join(", ")}`;
    need(isWritten(data), `${where} is written otherwise than it is`);
    const sign = inside.dataset.end === "most" ? 1 : -1, value = Number(data.value);
    const found = places(folder, [...axes].sort((a, b) => a - b), axes, labels).some((place) => estimates[place] === value);
    need(found && estimates.every((x) => sign * x <= sign * value), `${where} is not that of the table`);
    return 1;
  }

  function* compareTable(folder, table) {
    const given = table.dataset.given && folder.at(JSON.parse(table.dataset.given));
    const axes = folder.at(JSON.parse(table.dataset.of)), texts = (cells) => [...cells].map((cell) => cell.textContent);
    const heads = texts(table.tHead.querySelectorAll("th")).slice(axes.length - 1), last = axes.length - 1; // in columns
    let found = 0;
    for (const row of table.tBodies[0].rows) {
      if (row.classList.contains("gap")) continue;
      const labels = texts(row.querySelectorAll("th")), cells = row.querySelectorAll("td"), isTotal = row.classList.contains("total");
      if ("crossed" in table.dataset) {
        for (let k = 0; k < cells.length; k++) {
          const isAll = k >= folder.own[axes[last]].n; // the column of totals
          const names = [...(isTotal ? [] : labels), ...(isAll ? [] : [heads[k]])];
          const own = [...(isTotal ? [] : axes.slice(0, last)), ...(isAll ? [] : [axes[last]])];
          found += yield* given ? compareShare(folder, own, names, cells[k], given) : compare(folder, own, names, cells[k]);
        }
      } else {
        const inside = document.createDocumentFragment();
        for (const cell of [...cells].slice(0, 2)) inside.append(cell.cloneNode(true));
        const own = isTotal ? [] : axes, names = isTotal ? [] : labels.slice(0, axes.length);
        found += yield* compare(folder, own, names, inside);
        if (cells[2]?.querySelector("data")) found += yield* compareShare(folder, own, names, cells[2], []);
      }
    }
    return found;
  }

  // The rows of a table of changes, which follow from both releases; no answers, whose queries are not known.
  function* compareChanges(folder, table) {
    const { statistic, attributes, number } = JSON.parse(table.dataset.change);
    need(folder.sides, "the folder holds no changes");
    const sides = yield* folder.sides(statistic, attributes, number);
    if (!sides) return 0;
    const keys = [...sides[0].keys()].map((key) => [key, JSON.parse(key)]);
    let found = 0;
    for (const row of table.tBodies[0].rows) {
      if (row.classList.contains("gap")) continue;
      const labels = [...row.querySelectorAll("th")].map((cell) => cell.textContent), cells = row.querySelectorAll("td");
      const numbers = [0, 2, 3].map((k) => [...cells[k].querySelectorAll("data")]), where = `a change of ${labels.join(", ")}`;
      need(numbers.flat().every((data) => Number.isNaN(Number(data.value)) || isWritten(data)), `${where} is written otherwise than it is`);
      const isOf = ([key]) => {
        const pair = sides.map((side) => side.get(key)), expected = verifier.changeOf(...pair), slack = verifier.slackOf(...pair);
        return [6, 0, 3].every((first, k) => numbers[k].every((data, j) => {
          const x = Number(data.value), y = expected[first + j];
          return Math.abs(x - y) <= slack(first + j, y) || (!Number.isFinite(x) && !Number.isFinite(y));
        }));
      };
      const named = keys.filter(([, own]) => own.every((label, k) => isLabel(labels[k], label)));
      need(named.some(isOf), `${where} is not that of the releases`);
      found += numbers.flat().length;
    }
    return found;
  }

  function* comparePage(folder, files) {
    const digest = document.getElementById("record");
    const record = files.get("release.json"), sha256 = record && (yield* verifier.sha256(record));
    need(!digest || digest.textContent === sha256, "release.json is not the one that this page names");
    let found = 0;
    for (const own of document.querySelectorAll("[data-change]")) found += yield* compareChanges(folder, own);
    const inTables = folder.tables.size ? document.querySelectorAll("[data-of]") : []; // none but CSV is read
    for (const own of inTables) {
      found += own.tHead ? yield* compareTable(folder, own)
        : own.dataset.end ? yield* compareEnd(folder, own) : yield* compare(folder, [], [], own);
      yield;
    }
    for (const own of document.querySelectorAll("[data-field]")) {
      const path = own.dataset.field.split("/");
      const isList = (inside) => Array.isArray(inside), step = (inside, key) => (isList(inside) ? inside[key] : inside?.get(key));
      const stated = path.reduce(step, folder.fields ?? folder.record);
      const isSame = own.value === undefined ? own.textContent === stated : Number(own.value) === Number(stated);
      need(isSame && (own.value === undefined || verifier.isClose(Number(own.textContent), Number(stated), 1e-9)),
        `${path.join(" ")} on this page is not that of the record`);
    }
    const others = document.querySelectorAll("data").length - found - document.querySelectorAll("data[data-field]").length;
    return [
      ...(found ? [`checked    ${found} numbers on this page: counts of the tables, their sums, and shares of them`] : []),
      `unchecked  ${others} other numbers on this page (intervals of shares and of largest and smallest groups, means and sums, answers), and sentences`,
      "unchecked  that this page has the script that it should have: another program is gaussnoise verify FOLDER",
    ];
  }

  function* check(files, isFolder) {
    const { lines, folder } = yield* verifier.verify(files, isFolder);
    if (!folder) return lines;
    try {
      return [...lines, ...(yield* comparePage(folder, files))];
    } catch (error) {
      return [`FAILED: ${error.message}`];
    }
  }

  function show(lines, isFolder) {
    const [word] = lines[0].split(/:| /), fault = lines[0].replace(/^\w+: /, "");
    verdict.className = word === "FAILED" ? "alarm" : "note";
    const isCompared = lines.some((line) => /^checked +\d+ numbers on this page/.test(line));
    const what = `${isCompared ? "privacy and the intervals of the counts" : "privacy"} of this page`;
    verdict.textContent = word === "checked" ? `Your browser has recomputed the ${what}${isFolder ? " and of the folder" : ""}: they agree. `
      : word === "FAILED" ? `This page and its ${isFolder ? "folder do" : "data do"} not agree: ${fault}. `
        : `Not checked here: ${fault}. `;
    const link = document.createElement("a");
    link.href = "#browser";
    link.textContent = "All checks";
    verdict.append(link);
    const items = (own) => {
      const inside = document.createElement("ul");
      inside.append(...own.map((line) => {
        const item = document.createElement("li");
        item.textContent = line.replace(/^(\w+):? +/, (_, word) => `${NAMES[word]}: `);
        return item;
      }));
      return inside;
    };
    const isLeft = (line) => line.startsWith("unchecked"), left = lines.filter(isLeft);
    const folded = document.createElement("details"), title = document.createElement("summary");
    title.textContent = `For those who check: ${left.length} lines on what is left unchecked`;
    folded.append(title, items(left));
    list.replaceChildren(items(lines.filter((line) => !isLeft(line))), ...(left.length ? [folded] : []));
  }

  // Work for a few milliseconds at a time, so that the page scrolls meanwhile.
  function run(steps, done) {
    const until = performance.now() + 12;
    let step;
    do step = steps.next(); while (!step.done && performance.now() < until);
    if (step.done) done(step.value);
    else setTimeout(run, 0, steps, done);
  }

  const texts = held ? Object.entries(JSON.parse(held.textContent)) : [], encoder = new TextEncoder();
  const inside = new Map(texts.map(([name, text]) => [name, encoder.encode(text)])); // the files that the page holds
  chooser.addEventListener("change", async () => {
    const files = new Map();
    for (const file of chooser.files) {
      const path = (file.webkitRelativePath || file.name).split("/");
      files.set(path.slice(1).join("/") || file.name, new Uint8Array(await file.arrayBuffer()));
    }
    if (files.has("changes.json")) for (const [name, bytes] of inside) files.set(name, bytes); // both releases
    verdict.textContent = "Your browser is checking the folder.";
    run(check(files, true), (lines) => show(lines, true));
  });
  document.getElementById("chooser").hidden = false;
  if (held) {
    verdict.textContent = "Your browser is checking this page.";
    run(check(inside, false), (lines) => show(lines, false));
  } else verdict.textContent = `Not checked here: ${verdict.dataset.reason}.`;
})();
