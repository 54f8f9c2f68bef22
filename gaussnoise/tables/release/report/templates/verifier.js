"use strict";
// The checks that notebooks/checks.md specifies, in exact arithmetic, for the browser of a reader.
// Integers of JSON are BigInt here, its objects are Map, and its other numbers are doubles.
const verifier = (() => {
  class Fault extends Error {}
  class Unknown extends Error {}
  const LEVELS = new Map([["columns", ["low", "high"]], ["level", 0.95], ["simultaneous", false]]);
  const ENDINGS = { csv: ".csv", parquet: ".parquet", jsonl: ".jsonl", xlsx: ".xlsx", "sdmx-csv": "+sdmx.csv", "json-stat": ".json" };
  const NUMBERS = ["estimate", "standard_deviation", "low", "high"];
  const CURVE = 128n; // triangles along the curve of a number and its square
  const BITS = 256n, ONE = 1n << BITS; // the unit of numbers that are no short fractions
  const QUANTILE = 1.959963984540054; // the 0.975 quantile of a normal distribution
  const PAUSE = 4096; // steps between two pauses
  const MOST_CELLS = 10 ** 6; // cells of a table whose numbers are not read
  const MOST_STEPS = 10 ** 7; // steps of the search for the pair of rows that is farthest apart

  function need(holds, fault, kind = Fault) {
    if (!holds) throw new kind(fault);
  }

  // ---- integers and fractions
  const abs = (x) => (x < 0n ? -x : x);
  const floor = (x, y) => (x - (((x % y) + y) % y)) / y; // y > 0
  const most = (numbers) => numbers.reduce((a, b) => (b > a ? b : a));
  const least = (numbers) => numbers.reduce((a, b) => (b < a ? b : a));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0n);
  const product = (numbers) => numbers.reduce((a, b) => a * b, 1n);

  // The largest integer whose k-th power is at most x.
  function root(x, k) {
    let low = 0n, high = 1n << BigInt(Math.ceil(x.toString(2).length / Number(k)));
    while (low < high) {
      const middle = (low + high + 1n) >> 1n;
      if (middle ** k <= x) low = middle;
      else high = middle - 1n;
    }
    return low;
  }

  // An integer m and an exponent e of a double m 2^e: 0 for integers.
  function parts(x) {
    need(Number.isFinite(x), "a number that is not finite");
    let e = 0;
    for (; !Number.isInteger(x); x *= 2) e -= 1;
    return [BigInt(x), e];
  }

  class Fraction {
    constructor(above, below = 1n) {
      let [a, b] = [abs(above), below];
      while (b) [a, b] = [b, a % b];
      [this.above, this.below] = [above / (a || 1n), below / (a || 1n)];
    }
    static of(x) {
      if (x instanceof Fraction) return x;
      if (typeof x === "bigint") return new Fraction(x);
      need(typeof x === "number", "a number was expected");
      const [m, e] = parts(x);
      return e < 0 ? new Fraction(m, 1n << BigInt(-e)) : new Fraction(m << BigInt(e));
    }
    plus(x) {
      const y = Fraction.of(x);
      return new Fraction(this.above * y.below + y.above * this.below, this.below * y.below);
    }
    times(x) {
      const y = Fraction.of(x);
      return new Fraction(this.above * y.above, this.below * y.below);
    }
    over(x) {
      const y = Fraction.of(x);
      need(y.above > 0n, "a divisor is not positive");
      return new Fraction(this.above * y.below, this.below * y.above);
    }
    atMost(x) {
      const y = Fraction.of(x);
      return this.above * y.below <= y.above * this.below;
    }
    get scaled() {
      return floor(this.above << BITS, this.below);
    }
    get number() { // to the last bit or the one before it
      const shift = BigInt(64 + this.below.toString(2).length - abs(this.above).toString(2).length);
      const [above, below] = shift > 0n ? [this.above << shift, this.below]
        : [this.above, this.below << -shift];
      let [x, e] = [Number(above / below), -Number(shift)];
      for (; e < -1000; e += 1000) x *= 2 ** -1000;
      for (; e > 1000; e -= 1000) x *= 2 ** 1000;
      return x * 2 ** e;
    }
  }
  function numeric(x) { // a number of a record as a double
    need(typeof x === "number" || typeof x === "bigint", "a number was expected");
    return Number(x);
  }

  // A number exactly as it is written in decimals.
  function written(x) {
    const [found, whole, places = "", power = "0"] = /^(\d+)(?:\.(\d*))?(?:e([+-]?\d+))?$/.exec(String(x)) ?? [];
    need(found, "a number was expected");
    const digits = BigInt(whole + places), exponent = BigInt(power) - BigInt(places.length);
    return exponent < 0n ? new Fraction(digits, 10n ** -exponent) : new Fraction(digits * 10n ** exponent);
  }
  const CLOSE = new Fraction(8n, 1n << 53n).plus(1n); // a few roundings of doubles
  const total = (fractions) => fractions.reduce((a, b) => a.plus(b), new Fraction(0n));
  const fits = (low, x) => low.atMost(x) && Fraction.of(x).atMost(low.times(CLOSE));
  const isClose = (x, y, tolerance) =>
    x === y || (Number.isFinite(x) && Number.isFinite(y) && Math.abs(x - y) <= tolerance * Math.max(Math.abs(x), Math.abs(y)));

  // ---- texts: JSON, TOML and CSV, and numbers as Python writes them
  function reader(text, what) {
    let at = 0;
    return {
      take(pattern) { // a sticky pattern
        pattern.lastIndex = at;
        const found = pattern.exec(text);
        if (found) at = pattern.lastIndex;
        return found;
      },
      must(pattern) {
        const found = this.take(pattern);
        need(found, `${what} cannot be read`);
        return found;
      },
      get done() {
        return at === text.length;
      },
    };
  }

  const decoded = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

  function json(text) {
    const from = reader(text, "JSON");
    const space = /[ \t\n\r]*/y;
    const string = /"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"/y;
    const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
    const words = { true: true, false: false, null: null };
    function value() {
      from.take(space);
      const opened = from.take(/[[{]/y)?.[0];
      const found = opened ? inner(opened) : plain();
      from.take(space);
      return found;
    }
    function plain() {
      const text = from.take(string), word = !text && from.take(/true|false|null/y);
      if (text || word) return text ? JSON.parse(text[0]) : words[word[0]];
      const [digits, point, power] = from.must(number);
      return point || power ? Number(digits) : BigInt(digits);
    }
    function inner(opened) {
      const [found, end] = opened === "{" ? [new Map(), /\}/y] : [[], /\]/y];
      from.take(space);
      if (from.take(end)) return found;
      do {
        if (opened === "{") {
          from.take(space);
          const key = JSON.parse(from.must(string)[0]);
          need(!found.has(key), "a key of the record occurs twice");
          from.take(space);
          from.must(/:/y);
          found.set(key, value());
        } else found.push(value());
      } while (from.take(/,/y));
      from.must(end);
      return found;
    }
    const found = value();
    need(from.done, "JSON goes on after its end");
    return found;
  }

  // The TOML of a schema: no text of several lines.
  function toml(text) {
    const from = reader(text, "the schema");
    const space = /[ \t]*/y, gap = /(?:[ \t\r\n]|#[^\n]*)*/y, whole = new Map();
    const basic = /"([^"\\\x00-\x08\x0a-\x1f\x7f]*(?:\\(?:[btnfr"\\]|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})[^"\\\x00-\x08\x0a-\x1f\x7f]*)*)"/y;
    const literal = /'([^'\n\r]*)'/y;
    function quoted() {
      need(!from.take(/"""|'''/y), "a text of several lines in the schema", Unknown);
      const found = from.take(basic);
      if (!found) return from.take(literal)?.[1];
      const long = (_, digits) => String.fromCodePoint(parseInt(digits, 16));
      const short = found[1].replace(/\\\\|\\U([0-9a-fA-F]{8})/g, (own, digits) => (digits ? long(own, digits) : own));
      return JSON.parse(`"${short.replaceAll("\t", "\\t")}"`);
    }
    function keys() {
      const found = [];
      do {
        from.take(space);
        found.push(quoted() ?? from.must(/[A-Za-z0-9_-]+/y)[0]);
        from.take(space);
      } while (from.take(/\./y));
      return found;
    }
    function within(table, path) {
      for (const key of path) {
        if (!table.has(key)) table.set(key, new Map());
        table = table.get(key);
        if (Array.isArray(table)) table = table.at(-1);
        need(table instanceof Map, "the schema cannot be read");
      }
      return table;
    }
    function assign(table) {
      const path = keys(), last = path.pop(), inside = within(table, path);
      from.must(/=/y);
      from.take(space);
      need(!inside.has(last), "a key of the schema occurs twice");
      inside.set(last, value());
      from.take(space);
    }
    function value() {
      const text = quoted();
      if (text !== undefined) return text;
      const found = [], table = new Map();
      if (from.take(/\[/y)) {
        for (from.take(gap); !from.take(/\]/y); from.take(gap)) {
          if (found.length) from.must(/,/y);
          from.take(gap);
          if (from.take(/\]/y)) break;
          found.push(value());
        }
        return found;
      }
      if (from.take(/\{/y)) {
        from.take(space);
        if (from.take(/\}/y)) return table;
        do assign(table); while (from.take(/,/y));
        from.must(/\}/y);
        return table;
      }
      const day = from.take(/(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?)?/y);
      if (day) return { text: [day[1], ...(day[2] ? [day[2].padEnd(8, ":00") + (day[3] ?? "")] : [])].join(" ") };
      const word = from.take(/true|false|([+-]?)(inf|nan)/y);
      if (word?.[2]) return (word[1] === "-" ? -1 : 1) * (word[2] === "inf" ? Infinity : NaN);
      if (word) return word[0] === "true";
      const [digits, point, power] = from.must(/[+-]?(?:0|[1-9][\d_]*)(\.[\d_]+)?([eE][+-]?[\d_]+)?/y);
      const plain = digits.replace(/_|^\+/g, "");
      return point || power ? Number(plain) : BigInt(plain);
    }
    let table = whole;
    for (from.take(gap); !from.done; from.take(gap)) {
      if (from.take(/\[\[/y)) {
        const path = keys(), last = path.pop(), inside = within(whole, path);
        from.must(/\]\]/y);
        if (!inside.has(last)) inside.set(last, []);
        inside.get(last).push((table = new Map()));
      } else if (from.take(/\[/y)) {
        table = within(whole, keys());
        from.must(/\]/y);
      } else assign(table);
      from.take(space);
      need(from.take(/#[^\n]*|\r?\n/y) || from.done, "the schema cannot be read");
    }
    return whole;
  }

  function* csv(text) {
    const from = reader(text, "a table");
    while (!from.done) {
      const row = [];
      do {
        const quoted = from.take(/"((?:[^"]|"")*)"/y);
        row.push(quoted ? quoted[1].replaceAll('""', '"') : from.must(/(?!")[^,\r\n]*/y)[0]);
      } while (from.take(/,/y));
      need(from.take(/\r?\n/y) || from.done, "a table cannot be read");
      yield row;
    }
  }

  // The parts of a zip file, and where each of them is.
  function partsOf(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), parts = new Map(), end = bytes.length - 22;
    const short = (place) => view.getUint16(place, true), long = (place) => view.getUint32(place, true);
    need(end >= 0 && long(end) === 0x06054b50, "a workbook cannot be read");
    for (let k = 0, place = long(end + 16); k < short(end + 10); k++) {
      const name = decoded(bytes.subarray(place + 46, place + 46 + short(place + 28))), local = long(place + 42);
      const start = local + 30 + short(local + 26) + short(local + 28);
      const again = decoded(bytes.subarray(local + 30, local + 30 + short(local + 26)));
      need(long(place) === 0x02014b50 && long(local) === 0x04034b50 && again === name && !parts.has(name), "the parts of a workbook");
      parts.set(name, { packed: bytes.subarray(start, start + long(place + 20)), method: short(place + 10), size: long(place + 24) });
      place += 46 + short(place + 28) + short(place + 30) + short(place + 32);
    }
    return parts;
  }

  // The bytes of a part of a zip file (RFC 1951).
  function inflated({ packed, method, size }) {
    if (method === 0) return packed;
    need(method === 8, "a workbook cannot be read");
    const found = new Uint8Array(size);
    let place = 0, bit = 0;
    const bits = (count) => {
      let x = 0;
      for (let k = 0; k < count; k++, bit++) x |= ((packed[bit >> 3] >> (bit & 7)) & 1) << k;
      return x;
    };
    const codes = (lengths) => { // how many codes have each length, and their symbols in order
      const counts = Array.from({ length: 16 }, (_, n) => (n ? lengths.filter((own) => own === n).length : 0));
      return [counts, counts.flatMap((_, n) => lengths.flatMap((own, symbol) => (n && own === n ? [symbol] : [])))];
    };
    const next = ([counts, symbols]) => {
      for (let n = 1, code = 0, first = 0, before = 0; n < 16; n++) {
        code |= bits(1);
        if (code - counts[n] < first) return symbols[before + code - first];
        [before, first, code] = [before + counts[n], (first + counts[n]) << 1, code << 1];
      }
      return undefined;
    };
    const put = (byte) => {
      need(place < size && bit <= 8 * packed.length, "a workbook cannot be read");
      found[place++] = byte;
    };
    for (let last = 0; !last;) {
      last = bits(1);
      const kind = bits(2);
      need(bit <= 8 * packed.length && kind < 3, "a workbook cannot be read");
      if (kind === 0) {
        bit = (bit + 7) & ~7;
        for (let left = bits(16) + 0 * bits(16); left; left--) put(bits(8));
        continue;
      }
      let lengths = Array.from({ length: 288 }, (_, k) => (k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8)), count = 288;
      if (kind === 1) lengths.push(...Array(30).fill(5));
      else {
        const [more, far, many] = [(count = bits(5) + 257), bits(5) + 1, bits(4) + 4], first = Array(19).fill(0);
        [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].slice(0, many).forEach((k) => (first[k] = bits(3)));
        const own = codes(first);
        for (lengths = []; lengths.length < more + far;) {
          const x = next(own);
          need(x !== undefined, "a workbook cannot be read");
          if (x < 16) lengths.push(x);
          else lengths.push(...Array(x === 16 ? 3 + bits(2) : x === 17 ? 3 + bits(3) : 11 + bits(7)).fill(x === 16 ? lengths.at(-1) : 0));
        }
      }
      const literals = codes(lengths.slice(0, count)), distances = codes(lengths.slice(count));
      for (let x = next(literals); x !== 256; x = next(literals)) {
        if (x < 256) put(x);
        else { // a copy of earlier bytes: lengths and distances double every four, and every two, symbols
          const k = x - 257, extra = k < 8 || k > 27 ? 0 : (k >> 2) - 1, length = k > 27 ? 258 : k < 8 ? k + 3 : (((k & 3) + 4) << extra) + 3 + bits(extra);
          const d = next(distances), more = d < 4 ? 0 : (d >> 1) - 1, back = d < 4 ? d + 1 : (((d & 1) + 2) << more) + 1 + bits(more);
          need(x < 286 && d < 30 && back <= place, "a workbook cannot be read");
          for (let left = length; left; left--) put(found[place - back]);
        }
      }
    }
    need(place === size, "a workbook cannot be read");
    return found;
  }

  // The rows of a sheet before its totals, of a workbook that has so many sheets, from the least to the most.
  function* sheetOf(bytes, sheet, sheets) {
    const parts = partsOf(bytes), links = "xl/_rels/workbook.xml.rels", textOf = (name) => decoded(inflated(parts.get(name)));
    const length = [...parts.keys()].filter((part) => part.startsWith("xl/worksheets/")).length;
    const own = [...Array.from({ length }, (_, k) => `xl/worksheets/sheet${k + 1}.xml`), "xl/styles.xml"];
    const all = ["[Content_Types].xml", "_rels/.rels", "xl/workbook.xml", links, ...own];
    need(length >= sheets[0] && length <= sheets[1] && same([...parts.keys()].sort(), all.sort()), "the parts of a workbook");
    const found = textOf(links).split("<Relationship ").slice(1).map((x) => /^Id="(\w+)" Type="[^"]*" Target="([^"]*)"\/>/.exec(x)?.slice(1));
    need(same(found, own.map((name, k) => [`rId${k + 1}`, name.slice(3)])), "the links of a workbook");
    const text = textOf(own[sheet - 1]), outside = text.slice(0, text.indexOf("<sheetData>")) + text.slice(text.lastIndexOf("</sheetData>"));
    need(!/<!|&#/.test(text) && !/hidden|merge/.test(outside), "a sheet of a workbook shows less than it holds");
    const from = reader(text, "a sheet"), letter = (k) => String.fromCharCode(65 + k);
    from.must(/[^]*?<sheetData>/y);
    for (let k = 1, row; (row = from.take(/<row r="(\d+)">/y)); k++) {
      const cells = [], places = [];
      for (let cell; (cell = from.take(/<c r="([A-Z]+\d+)" s="\d+"(?: t="(inlineStr|b)")?(?:\/>|>(?:<is><t xml:space="preserve">([^<]*)<\/t><\/is>|<v>([^<]*)<\/v>)<\/c>)/y));) {
        const [, place, kind, text = "", number = ""] = cell, marks = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
        const plain = kind === "b" ? String(number === "1") : number + text.replace(/&(lt|gt|amp);/g, (x) => marks[x]);
        cells.push(plain.replace(/_x([0-9A-F]{4})_/g, (_, digits) => String.fromCharCode(parseInt(digits, 16))));
        places.push(place);
      }
      from.must(/<\/row>/y);
      const expected = cells.map((_, j) => `${j < 26 ? "" : letter(Math.floor(j / 26) - 1)}${letter(j % 26)}${k}`);
      need(row[1] === String(k) && same(places, expected), "a row of a workbook is hidden or has other cells");
      yield cells;
    }
    from.must(/<\/sheetData>|<row r="\d+" s="\d+" customFormat="1">/y);
  }

  // The rows of a table as texts, below these heads; in a workbook, of a sheet.
  function* rowsIn(bytes, name, heads, sheet, sheets) {
    if (name.endsWith(".xlsx")) {
      const rows = sheetOf(bytes, sheet, sheets), marked = same(heads.slice(-4), NUMBERS);
      need(same(rows.next().value ?? [], marked ? [...heads, "mark"] : heads), `the columns of ${name}`);
      for (const row of rows) {
        if (marked) {
          const mark = row.pop(), [x, sd] = row.slice(-4).map(double), level = sd ? [0.1, 0.25, 0.5].filter((part) => sd >= part * Math.abs(x)).length : 0;
          need(mark === ["", "^", "*", "**"][level], `a mark in ${name}`);
        }
        yield row;
      }
      return;
    }
    const text = decoded(bytes);
    if (!name.endsWith(".jsonl")) {
      const rows = csv(text);
      need(same(rows.next().value ?? [], heads), `the columns of ${name}`);
      yield* rows;
      return;
    }
    for (const line of text.split("\n").slice(0, text.endsWith("\n") ? -1 : undefined)) {
      const row = json(line);
      need(row instanceof Map && same([...row.keys()], heads), `the columns of ${name}`);
      const labels = heads.length - (same(heads.slice(-4), NUMBERS) ? 4 : CHANGES.length);
      const isPlain = (x, k) => x === null || (k < labels ? typeof x !== "object" : ["number", "bigint"].includes(typeof x));
      need([...row.values()].every(isPlain), `a number of ${name}`);
      yield [...row.values()].map((x) => (x === null ? "" : word(x)));
    }
  }

  function double(text) {
    need(/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(text), "a number of a table cannot be read");
    return Number(text);
  }

  // Figures whose first one stands for 10^e, with an exponent below 1e-4 and from 10^most on.
  function laid(sign, figures, e, most, point) {
    if (e < -4 || e >= most) {
      const end = `e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
      return sign + figures[0] + (figures.length > 1 ? `.${figures.slice(1)}` : "") + end;
    }
    const text = figures.padStart(figures.length + Math.max(-e, 0), "0").padEnd(e + 1, "0"), whole = Math.max(e, 0) + 1;
    return sign + text.slice(0, whole) + (text.length > whole ? `.${text.slice(whole)}` : point);
  }

  // Shortest digits.
  function decimal(x) {
    if (!Number.isFinite(x)) return String(x).replace("Infinity", "inf").toLowerCase();
    const [digits, power] = x.toExponential().split("e");
    return laid(Object.is(x, -0) || x < 0 ? "-" : "", digits.replace(/[-.]/g, ""), Number(power), 16, ".0");
  }

  // A number of significant digits, of ties the even one.
  function rounded(value, count) {
    const x = Fraction.of(value), size = new Fraction(abs(x.above), x.below);
    if (!x.above) return Object.is(value, -0) ? "-0" : "0";
    let e = abs(x.above).toString().length - x.below.toString().length;
    const ten = (k) => (k < 0 ? new Fraction(1n, 10n ** BigInt(-k)) : new Fraction(10n ** BigInt(k)));
    e -= size.atMost(ten(e)) && !ten(e).atMost(size) ? 1 : 0;
    const scaled = size.times(ten(count - 1 - e));
    let digits = scaled.above / scaled.below, rest = 2n * (scaled.above - digits * scaled.below);
    digits += rest > scaled.below || (rest === scaled.below && digits & 1n) ? 1n : 0n;
    if (digits === 10n ** BigInt(count)) [digits, e] = [digits / 10n, e + 1];
    return laid(x.above < 0n ? "-" : "", digits.toString().replace(/(?!^)0+$/, ""), e, count, "");
  }

  function said(x) { // a value as a text
    if (typeof x === "number") return decimal(x);
    if (typeof x === "boolean") return x ? "True" : "False";
    return x === null ? "None" : (x.text ?? String(x));
  }

  // A label, or an end of a bin, as tables write it.
  const word = (x) => (typeof x === "boolean" ? String(x) : (x?.text?.replace(" ", "T") ?? said(x)));
  const nineDigits = (x) => rounded(x, 9);

  function words(x) { // of all labels in a list or an object
    if (x instanceof Map) return new Map([...x].map(([key, own]) => [key, words(own)]));
    return Array.isArray(x) ? x.map(words) : word(x);
  }

  function quote(text) { // a text as Python's repr
    const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
    const known = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", [mark]: `\\${mark}` };
    const inside = Array.from(text, (c) => {
      const code = c.codePointAt(0).toString(16);
      if (known[c]) return known[c];
      if (c === " " || !/[\p{C}\p{Z}]/u.test(c)) return c;
      return code.length < 3 ? `\\x${code.padStart(2, "0")}` : code.length < 5
        ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
    });
    return mark + inside.join("") + mark;
  }

  function dumps(value) { // as Python's json.dumps
    if (typeof value === "number") return said(value).replace("inf", "Infinity").replace("nan", "NaN");
    if (Array.isArray(value)) return `[${value.map(dumps).join(", ")}]`;
    if (value instanceof Map) {
      return `{${[...value].map(([key, x]) => `${dumps(key)}: ${dumps(x)}`).join(", ")}}`;
    }
    if (typeof value !== "string") return String(value);
    return JSON.stringify(value).replace(/[\x7f-\uffff]/g,
      (c) => (c === "\x7f" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`));
  }

  function same(x, y) {
    if (Array.isArray(x)) return Array.isArray(y) && x.length === y.length && x.every((own, k) => same(own, y[k]));
    if (x instanceof Map) {
      return y instanceof Map && x.size === y.size && [...x].every(([key, own]) => y.has(key) && same(own, y.get(key)));
    }
    const numbers = [x, y].every((own) => ["bigint", "number"].includes(typeof own));
    return numbers ? x == y : x === y; // eslint-disable-line eqeqeq (1n and 1)
  }

  function at(map, ...path) {
    for (const key of path) {
      need(map instanceof Map && map.has(key), `the record has no ${path.join(".")}`);
      map = map.get(key);
    }
    return map;
  }

  // ---- SHA-256
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const START = primes.slice(0, 8).map((p) => Number(BigInt.asIntN(32, root(BigInt(p) << 64n, 2n))));
  const ROUNDS = primes.map((p) => Number(BigInt.asIntN(32, root(BigInt(p) << 96n, 3n))));

  function* sha256(bytes) {
    const size = (((bytes.length + 8) >> 6) + 1) << 6, padded = new Uint8Array(size);
    padded.set(bytes);
    padded[bytes.length] = 0x80;
    const view = new DataView(padded.buffer), state = Int32Array.from(START), w = new Int32Array(64);
    view.setBigUint64(size - 8, BigInt(bytes.length) * 8n);
    const turn = (x, k) => (x >>> k) | (x << (32 - k));
    for (let from = 0; from < size; from += 64) {
      if (from % (64 * PAUSE) === 0) yield;
      for (let i = 0; i < 16; i++) w[i] = view.getInt32(from + 4 * i);
      for (let i = 16; i < 64; i++) {
        const s = w[i - 15], t = w[i - 2];
        w[i] = w[i - 16] + (turn(s, 7) ^ turn(s, 18) ^ (s >>> 3)) + w[i - 7] + (turn(t, 17) ^ turn(t, 19) ^ (t >>> 10));
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let i = 0; i < 64; i++) {
        const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
        const other = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + other) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((x, k) => (state[k] += x));
    }
    return Array.from(state, (x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  }

  // ---- attributes and their matrices
  const integers = (row) => row.split(" ").map((x) => {
    need(/^(0|-?[1-9]\d*)$/.test(x), "an integer of a matrix");
    return BigInt(x);
  });

  // The inverse of an integer matrix, times ONE.
  function* inverse(A) {
    const n = A.length, work = A.map((row, i) => [...row, ...row.map((_, k) => BigInt(i === k))].map((x) => x << BITS));
    for (let k = 0; k < n; k++) {
      let best = k;
      for (let i = k + 1; i < n; i++) if (abs(work[i][k]) > abs(work[best][k])) best = i;
      [work[k], work[best]] = [work[best], work[k]];
      const pivot = work[k][k];
      need(pivot, "a matrix does not tell all categories apart");
      work[k] = work[k].map((x) => (x << BITS) / pivot);
      for (let i = 0; i < n; i++) {
        const factor = work[i][k];
        if (i !== k && factor) work[i] = work[i].map((x, j) => x - ((factor * work[k][j]) >> BITS));
        yield;
      }
    }
    const found = work.map((row) => row.slice(n));
    for (let i = 0; i < n; i++) {
      yield;
      for (let k = 0; k < n; k++) {
        const off = sum(A[i].map((x, j) => x * found[j][k])) - (i === k ? ONE : 0n);
        need(abs(off) < ONE >> 128n, "a matrix cannot be inverted well");
      }
    }
    return found;
  }

  // Points whose triangles hold a row's columns (1 - t)^2 a + 2 t (1 - t) b + t^2 c for all 0 <= t <= 1, times 128^2:
  // of the curve, and where its tangents at neighbouring points meet. A row without a number is in the last cell.
  function aroundCurve([a, b, c, ...other]) {
    const found = other.map((column) => column.map((x) => x * CURVE * CURVE));
    for (let s = 0n; s <= CURVE; s++) {
      for (const t of s < CURVE ? [s, s + 1n] : [s]) {
        const [p, q] = [CURVE - s, CURVE - t];
        found.push(a.map((x, k) => p * q * x + (p * t + s * q) * b[k] + s * t * c[k]));
      }
    }
    return found;
  }

  // The labels of an attribute, its integer matrix (null for n I - 1 1'), and all that follows.
  function* attribute(entry, rows) {
    const labels = at(entry, "labels"), texts = labels.map(word);
    const n = texts.length, N = BigInt(n);
    need(n && new Set(texts).size === n, `labels of ${quote(at(entry, "name"))}`);
    const isClipped = entry.has("clip"), base = entry.get("base");
    const squares = isClipped && base instanceof Map && at(base, "degrees").includes(2n);
    const parts = isClipped ? (squares ? 3n : 2n) : entry.has("unit") ? 2n : null;
    const own = { labels, texts, n, N, matrix: null, divisor: N, blur: 2, squares, parts, others: new Map() };
    if (rows === undefined) {
      own.variance = Array(n).fill((ONE * (N - 1n)) / (n > 2 ? N ** 3n : 4n));
      own.share = Array(n).fill(ONE / N);
      own.lengths = Array(n).fill(n > 2 ? N * N - N : N - 1n);
      if (n > 2) return { ...own, square: N * N - N, longest: N * N - N, least: -N };
      return { ...own, matrix: [[1n, -1n]], square: N - 1n, longest: N - 1n, least: 1n - N };
    }
    const C = rows.map(integers);
    need(C.length === n - 1 && C.every((row) => row.length === n), `the matrix of ${quote(at(entry, "name"))}`);
    let points = labels.map((_, k) => C.map((row) => row[k])), one = 1n, square = 0n, lowest;
    const lengths = points.map((x) => sum(x.map((value) => value * value))), longest = most(lengths);
    if (squares) [points, one] = [aroundCurve(points), CURVE ** 4n];
    for (let a = 0; a < points.length; a++) {
      for (let b = a; b < points.length; b++) {
        const inner = sum(points[a].map((x, k) => x * points[b][k]));
        if (inner > square) square = inner;
        if (lowest === undefined || inner < lowest) lowest = inner;
      }
      yield;
    }
    [square, lowest] = [-floor(-square, one), floor(lowest, one)];
    const R = yield* inverse([Array(n).fill(1n), ...C]);
    const length = (matrix) => most(matrix.map((row) => sum(row.map(abs))));
    return {
      ...own, matrix: C, divisor: 1n, square, lengths, longest, least: lowest, solved: n > 1,
      variance: R.map((row) => sum(row.slice(1).map((x) => x * x)) >> BITS),
      share: R.map((row) => row[0]),
      blur: C.length ? new Fraction(length(R) * length(C), ONE).number : 0,
    };
  }

  // Whether C u = 0 for both matrices and one vector of integers u: then they spread totals alike.
  function* isSpreadAlike(one, other) {
    const top = most(one.share), rows = [...(one.matrix ?? []), ...(other.matrix ?? [])];
    for (let q = 1n; q <= 1024n; q++) {
      const u = one.share.map((x) => floor(2n * q * x + top, 2n * top)); // the nearest to q v / max v
      if (rows.every((row) => sum(row.map((x, k) => x * u[k])) === 0n)) return true;
      yield;
    }
    return false;
  }

  // C, or the sum, along the axis of an attribute that follows ``lead`` cells of others.
  function* along(values, lead, own, measured) {
    const { n, N } = own, rest = values.length / (lead * n), found = [];
    const rows = !measured || own.matrix === null ? null : own.matrix;
    for (let block = 0; block < lead; block++) {
      const column = (k, j) => values[(block * n + k) * rest + j];
      for (const row of rows ?? []) {
        for (let j = 0; j < rest; j++) {
          let x = 0n;
          for (let k = 0; k < n; k++) x += row[k] * column(k, j);
          found.push(x);
          if (found.length % 64 === 0) yield;
        }
      }
      if (rows) continue;
      const totals = Array(rest).fill(0n);
      for (let k = 0; k < n; k++) for (let j = 0; j < rest; j++) totals[j] += column(k, j);
      if (!measured) for (const x of totals) found.push(x);
      else for (let k = 0; k < n; k++) for (let j = 0; j < rest; j++) found.push(N * column(k, j) - totals[j]);
      yield;
    }
    return found;
  }

  // The sum over texts K of weight_K times, for each attribute, that one of its factors whose number K has in its place.
  function* variances(factors, weights) {
    if (!factors.length) return [weights.get("") ?? 0n];
    const [first, ...others] = factors, made = new Map(), found = [];
    for (let k = 0; k < first[0].length; k++) {
      const own = first.map((factor) => factor[k]), name = own.join(" ");
      if (!made.has(name)) {
        const mixed = new Map();
        for (const [K, weight] of weights) {
          const part = (weight * own[K.charCodeAt(0)]) >> BITS;
          mixed.set(K.slice(1), (mixed.get(K.slice(1)) ?? 0n) + part);
        }
        made.set(name, yield* variances(others, mixed));
      }
      for (const x of made.get(name)) found.push(x);
      yield;
    }
    return found;
  }

  function* subsets(items, size) {
    if (size === undefined) for (let k = 0; k <= items.length; k++) yield* subsets(items, k);
    else if (size === 0) yield [];
    else {
      for (let k = 0; k + size <= items.length; k++) {
        for (const rest of subsets(items.slice(k + 1), size - 1)) yield [items[k], ...rest];
      }
    }
  }

  // The labels of a group: its categories in the order of the attribute, or all bins between two edges.
  function membersOf(group, ends, cells) {
    if (!ends.length) {
      const own = words(group);
      need(own.every((x) => cells.includes(x)), "a group of the schema");
      return cells.filter((cell) => own.includes(cell));
    }
    const [low, high] = group.map((end) => ends.map(moment).indexOf(moment(end)));
    need(group.length === 2 && low >= 0 && high > low, "a group of the schema");
    return cells.slice(low, high);
  }

  // An edge for comparison: a number, or a time to the second, also of a day.
  function moment(end) {
    if (typeof end === "number" || typeof end === "bigint") return Number(end);
    const [day, time = ""] = said(end).split(/[T ]/);
    return `${day} ${time.padEnd(8, "00:00:00".slice(time.length))}`.replace(/(\.\d*?)0+$/, "$1");
  }

  // What a record says about an attribute, from its schema.
  function entryOf(name, given) {
    const ends = given.get("edges") ?? [], clip = given.get("clip") ?? [], base = given.get("base"), texts = words(ends);
    const bins = texts.slice(1).map((high, k) => {
      const end = k === texts.length - 2 && high !== "inf" ? "]" : ")";
      return `${texts[k] === "-inf" ? "(" : "["}${texts[k]}, ${high}${end}`;
    });
    const named = given.get("names") ?? bins;
    need(named.length === bins.length, `names of the intervals of ${quote(name)}`);
    let cells = words(given.get("categories") ?? named);
    if (clip.length) {
      const [low, high] = clip.map((end) => `weight at ${rounded(Number(end), 15)}`);
      const isSquared = base instanceof Map && at(base, "degrees").includes(2n);
      cells = [low, ...(isSquared ? ["weight between"] : []), high];
    }
    // without an upper end: the last cell stands for 2^20 units
    if (given.has("unit")) cells = ["weight at 0", `weight at ${rounded(Number(given.get("unit")) * 2 ** 20, 15)}`];
    if (given.has("other")) cells.push(word(given.get("other")));
    const entry = new Map([["name", name], ["labels", cells]]);
    if (ends.length) entry.set("edges", ends.map((end) => said(typeof end === "bigint" ? Number(end) : end)));
    if (clip.length) entry.set("clip", clip);
    if (given.has("unit")) entry.set("unit", given.get("unit"));
    if (base !== undefined) entry.set("base", base);
    if (given.has("groups")) {
      entry.set("groups", new Map([...given.get("groups")].map(([level, own]) =>
        [level, new Map([...own].map(([group, members]) => [group, membersOf(members, ends, cells)]))])));
    }
    return entry;
  }

  const isRead = (name) => /\.(csv|jsonl|xlsx)$/.test(name) && !name.endsWith("+sdmx.csv");
  const isInside = (T, S) => T.every((i) => S.includes(i));
  const isTrue = (x) => x instanceof Map ? x.size > 0 : Array.isArray(x) ? x.length > 0 : Boolean(x);

  // ---- a folder
  // Read lists of more than 1000 entries; returns the names of their files, which are JSON lines.
  function readLists(record, files, whole) {
    const names = [];
    for (const key of ["marginals", "measurements"]) {
      const listed = record.get(key), name = `${key}.jsonl`;
      if (!(listed instanceof Map)) continue;
      need(at(listed, "file") === name, "a list in Parquet", Unknown);
      need(files.has(name), `${name} is not there`, whole ? Fault : Unknown);
      record.set(key, decoded(files.get(name)).replace(/\n$/, "").split("\n").map(json));
      need(at(listed, "count") === BigInt(record.get(key).length), `the number of ${key}`);
      names.push(name);
    }
    return names;
  }

  class Folder {
    // ``files`` are bytes by path; some may be missing unless ``whole``
    constructor(files, whole) {
      Object.assign(this, { files, whole, checked: [], unchecked: [], tables: new Map(), known: new Map(), noises: new Map() });
      Object.assign(this, { alone: false, growth: 1n, spread: 1 }); // whether no other folder has its measurements; over ticks
    }

    say(line) {
      this.checked.push(line);
    }

    include(name, one) {
      for (const key of ["checked", "unchecked"]) this[key].push(...one[key].map((line) => `${name}: ${line}`));
    }

    skip(line) {
      if (!this.unchecked.includes(line)) this.unchecked.push(line);
    }

    at(names) {
      return [...names].map((name) => {
        need(this.positions.has(name), `no attribute ${said(name)}`);
        return this.positions.get(name);
      });
    }

    // Positions of attributes in their order, each once.
    inOrder(names) {
      const S = this.at(names);
      need(S.every((i, k) => !k || i > S[k - 1]), "names twice, or not in the order of the domain");
      return S;
    }

    // Names of attributes, what the record says of them, and their matrices.
    setAttributes(domain, own) {
      this.domain = domain;
      this.names = domain.map((entry) => at(entry, "name"));
      this.positions = new Map(this.names.map((name, i) => [name, i]));
      need(this.positions.size === domain.length, "names");
      this.own = own;
    }

    *open(record) {
      this.record = record;
      need(at(record, "private") === true, "a simulation, which is not private");
      this.lists = readLists(record, this.files, this.whole);
      this.entries = at(record, "marginals");
      need(Array.isArray(at(record, "domain")), "the domain");
      yield* this.openPlan();
      this.sets = this.entries.map((entry) => this.inOrder(at(entry, "attributes")));
    }

    // What the record of a release, or of a stream, has of the plan and of its noise.
    *openPlan() {
      const { record } = this;
      [this.plan, this.noise] = [at(record, "plan"), at(record, "noise")];
      const schema = toml(at(this.plan, "schema")).get("attributes");
      need(schema instanceof Map, "the schema");
      this.schema = [...schema].map(([name, given]) => entryOf(name, given));
      const domain = record.get("domain") ?? this.schema, matrices = this.noise.get("contrasts") ?? new Map();
      this.setAttributes(domain, []);
      need([...matrices.keys()].every((name) => this.positions.has(name)), "names");
      this.own = [];
      for (const entry of domain) {
        const name = at(entry, "name"), own = yield* attribute(entry, matrices.get(name));
        this.own.push({ ...own, other: schema.get(name)?.has("other") ? own.n - 1 : null }); // the place of its catch-all
      }
      this.multipliers = new Map();
      for (const entry of at(record, "measurements")) {
        const T = this.inOrder(at(entry, "attributes")), s = at(entry, "multiplier");
        need(typeof s === "string" && /^[1-9]\d*$/.test(s) && !this.multipliers.has(`${T}`), "multipliers");
        this.multipliers.set(`${T}`, { T, s: BigInt(s) });
      }
      this.public = this.at(this.plan.get("public") ?? []);
      this.weight = this.plan.get("weight") ?? null;
      this.most = Fraction.of(this.weight ? at(this.weight, "most") : 1n);
      this.unit = this.noise.has("unit") ? at(this.noise, "unit", "units_of_a_row") : 1n;
      need(typeof this.unit === "bigint", "units");
      const sigma = Fraction.of(at(this.noise, "sigma"));
      for (const [key, { T, s }] of this.multipliers) {
        const scale = sigma.times(this.most).over(s * this.unit);
        this.noises.set(key, { T, v: scale.times(scale) });
      }
      for (const entry of this.noise.get("contrasts_in_sets") ?? []) {
        const name = at(entry, "attribute"), [i] = this.at([name]), other = yield* attribute(domain[i], at(entry, "contrasts"));
        const proven = at(record, "neighbors") === "add-remove" && !domain[i].has("unit") && !other.squares;
        need(matrices.has(name) && proven, `matrices of ${quote(name)} in sets`);
        need(yield* isSpreadAlike(this.own[i], other), `matrices of ${quote(name)} spread totals in other ways`);
        for (const names of at(entry, "sets")) {
          const T = this.inOrder(names), isFirst = T.includes(i) && !this.own[i].others.has(this.keyOf(T));
          need(isFirst && this.multipliers.has(`${T}`), `a set of ${quote(name)}`);
          this.own[i].others.set(this.keyOf(T), other);
        }
      }
      this.exchanged = at(record, "neighbors") === "replace";
      this.moving = at(record, "neighbors") === "add-remove" || at(record, "person") !== null;
      const usual = new Map(this.schema.map((entry) => [at(entry, "name"), entry.get("base") ?? "identity"]));
      let given = at(this.plan, "workload");
      if (typeof given === "bigint") given = [...subsets(this.names, Number(given))];
      given = given.map((term) => (term instanceof Map ? term : new Map(term.map((name) => [name, null]))));
      const inOrder = (term) => [...term].sort(([a], [b]) => this.positions.get(a) - this.positions.get(b));
      this.terms = given.map((term) => new Map(inOrder(term).map(([name, x]) => [name, x ?? usual.get(name)])));
      this.asked = this.terms.map((term) => this.at(term.keys()));
    }

    // The key of a set of attributes among the matrices of an attribute.
    keyOf(T) {
      return JSON.stringify(T.map((i) => this.names[i]).sort());
    }

    // The attributes of T with the matrices by which T is measured.
    measuring(T) {
      const key = this.keyOf(T);
      return T.map((i) => this.own[i].others.get(key) ?? this.own[i]);
    }

    cells(S) {
      return S.reduce((n, i) => n * this.own[i].n, 1);
    }

    // The files, and the privacy of what they hold; then words, numbers and optimality.
    *check() {
      this.sayFiles(yield* this.checkFiles("release.json", [...this.lists, ...this.entries.map((e) => at(e, "file"))], ["release.png", "noise.npz", "answers/", "verifier/"]));
      yield* this.checkPrivacy();
      yield* this.checkRequest();
      yield* this.checkTables();
      this.sayIntegers([...this.known.values()]);
      yield* this.checkOptimality();
    }

    // ---- 1. Files
    // Compare every file with its sha256; ``free`` are names, or folders, of files that may be there.
    *checkFiles(own, tables, free, files = this.files, listed = at(this.record, "files")) {
      const names = [...files.keys()].filter((x) => ![own, "signature.json"].includes(x));
      const missing = [...listed.keys()].filter((name) => !files.has(name));
      const odd = [...(this.whole ? missing : []), ...names.filter((name) => !listed.has(name))];
      need(!odd.length, `missing or added: ${odd.sort().join(", ")}`);
      const must = new Set(["summary.txt", "method.txt", "ddi.xml", ...tables]);
      for (const name of [...must]) if (name.endsWith(".csv")) must.add(`${name}-metadata.json`);
      const isFree = (name) => free.some((x) => (x.endsWith("/") ? name.startsWith(x) : name === x));
      const others = [...must].filter((name) => !listed.has(name));
      others.push(...[...listed.keys()].filter((name) => !must.has(name) && !isFree(name)));
      need(!others.length, `not of such a folder: ${others.join(", ")}`);
      for (const name of names) {
        const found = yield* sha256(files.get(name));
        need(found === listed.get(name), `${quote(name)} has another sha256 than the record says`);
      }
      if (files.has("summary.txt")) need(!decoded(files.get("summary.txt")).includes("NOT PRIVATE"), "a simulation");
      this.unchecked.push(...names.filter((name) => name.startsWith("answers/") || name.startsWith("verifier/")));
      return { names, missing };
    }

    sayFiles({ names, missing }) {
      const only = this.whole ? ", and no other" : ", of those that this page holds";
      this.say(`${names.length} files: each has the stated sha256${only}`);
      if (missing.length) this.unchecked.push(`files that this page does not hold: ${missing.join(", ")}`);
    }

    // ---- 2. Unit of privacy
    // Which tables are neighbours: by one row, or by all rows of a person.
    *checkUnit() {
      const { record, plan } = this, k = at(record, "rows_per_person"), relation = at(record, "neighbors");
      const agree = ["neighbors", "rows_per_person", "person"].every((key) => same(at(record, key), at(plan, key)))
        && same(record.get("per_person") ?? null, plan.get("per_person") ?? null);
      need(agree && typeof k === "bigint" && typeof at(plan, "rows_per_person") === "bigint" && k > 0n && ["add-remove", "replace"].includes(relation), "unit");
      const weight = this.noise.get("unit")?.get("weight") ?? null;
      need(same(this.weight, weight) && this.most.above > 0n, "weight");
      need(!this.exchanged || !this.weight, "weights where rows are exchanged");
      need(!this.weight || !this.own.some((own) => own.squares), "squares of weighted rows");
    }

    // ---- 3. Measurements
    // All that the tables are made of, and nothing else.
    *checkMeasured() {
      const wanted = new Set();
      for (const S of this.sets) {
        for (const T of subsets(S.filter((i) => this.own[i].n > 1))) wanted.add(`${T}`);
        yield;
      }
      wanted.add("");
      for (const T of [...wanted]) {
        const isPublic = isInside(T ? T.split(",").map(Number) : [], this.public);
        if (isPublic && !(this.moving && T === "")) wanted.delete(T);
      }
      need(same([...wanted].sort(), [...this.multipliers.keys()].sort()), "measured sets");
      need(!(this.public.length && this.moving), "measured sets");
      const inParts = this.weight || this.sets.some((S) => S.some((i) => this.domain[i].has("clip") || this.domain[i].has("unit")));
      const exponent = this.unit.toString(2).length - 1;
      need(this.unit === 1n << BigInt(exponent) && (inParts ? exponent >= 10 && exponent <= 20 : exponent === 0), "units");
    }

    // ---- 4. Sensitivity
    // The least sum of the answers' inner products over all sets of attributes in which rows differ.
    *farthest(parts, free) {
      if (!free.length) return sum(parts.map(([, x]) => x));
      const [i, ...rest] = free, ends = [];
      for (const end of [this.own[i].square, this.own[i].least]) {
        const merged = new Map();
        for (const [T, x] of parts) {
          const left = T.filter((k) => k !== i);
          const [, before] = merged.get(`${left}`) ?? [left, 0n];
          merged.set(`${left}`, [left, before + (left.length < T.length ? x * end : x)]);
        }
        ends.push(yield* this.farthest([...merged.values()], rest));
      }
      yield;
      return least(ends);
    }

    // The largest squared change of the integers between neighbours, in units.
    *moved() {
      const grows = [...new Set(this.sets.flat())].filter((i) => this.domain[i].has("unit"));
      if (grows.length) return yield* this.paid(grows);
      const parts = [...this.multipliers.values()].map(({ T, s }) => [T, s * s]);
      if (!this.exchanged) return yield* this.longest(parts);
      const lengths = (T, has) => product(this.measuring(T).filter((_, k) => has(T[k])).map((own) => own.square));
      const whole = sum(parts.map(([T, x]) => x * lengths(T, () => true)));
      const free = [...new Set(parts.flatMap(([T]) => T))].filter((i) => !this.public.includes(i));
      need(parts.length * 2 ** free.length < MOST_STEPS, "too many attributes", Unknown);
      this.many = free.length > 14;
      // public attributes are the same in both rows
      const left = parts.map(([T, x]) => [T.filter((i) => free.includes(i)), x * lengths(T, (i) => !free.includes(i))]);
      const change = 2n * (whole - (yield* this.farthest(left, free)));
      return this.moving && whole > change ? whole : change;
    }

    // The largest squared length of the measurements of one row. Attributes with other matrices in some sets count by
    // category, others with their longest column.
    *longest(measured) {
      const used = measured.map(([T, x]) => [T, x, this.measuring(T)]);
      const free = [...new Set(measured.flatMap(([T]) => T))].filter((i) => this.own[i].others.size);
      const rows = free.reduce((count, i) => count * this.own[i].n, 1);
      need(rows * used.length < MOST_STEPS, "too many categories", Unknown);
      let largest = 0n;
      for (let row = 0; row < rows; row++) {
        const cells = new Map();
        let rest = row;
        for (const i of free) {
          cells.set(i, rest % this.own[i].n);
          rest = Math.floor(rest / this.own[i].n);
        }
        const lengthOf = (a, i) => (cells.has(i) ? a.lengths[cells.get(i)] : a.square);
        const length = sum(used.map(([T, x, own]) => x * product(own.map((a, k) => lengthOf(a, T[k])))));
        if (length > largest) largest = length;
        yield;
      }
      return largest;
    }

    // The least m with a + sum of b u^2 at most m (1 + sum of (u/t)^2), for all numbers u of a row without an upper end,
    // in cells of 2^20 units, and their scales t: the largest ratio of the coefficients of the same squares.
    *paid(grows) {
      const scales = at(this.plan, "privacy").get("scale") ?? new Map(), names = grows.map((i) => this.names[i]);
      const rows = at(this.record, "rows_per_person"); // a person's rows cost k^2 rho_of_one_row
      const isPlain = !this.exchanged && !this.plan.has("per_person") && !this.weight && this.growth === 1n;
      need(isPlain && at(this.plan, "privacy", "definition") === "PerRecord", "the budget");
      need(names.every((name) => scales.has(name)), "a number that no budget grows with");
      need(grows.every((i) => same(this.own[i].matrix, [[0n, 1n]])) && this.unit === 1n << 20n, "sums are not measured apart from counts");
      const squares = [new Fraction(1n), ...grows.map((i, k) => {
        const t = written(scales.get(names[k])).over(written(at(this.domain[i], "unit"))).over(rows << 20n);
        return t.times(t);
      })];
      const parts = squares.map(() => []), sums = [];
      for (const { T, s } of this.multipliers.values()) {
        const [number = -1, ...more] = T.map((i) => grows.indexOf(i)).filter((k) => k >= 0);
        need(!more.length, "a product of such numbers");
        parts[number + 1].push([T, s * s]);
      }
      for (const part of parts) sums.push(yield* this.longest(part));
      this.say(`budgets that grow with numbers pay for any numbers in ${rows} row(s)`);
      return squares.map((t, k) => t.times(sums[k])).reduce((a, b) => (a.atMost(b) ? b : a));
    }

    // What rounding adds where squares of numbers are summed: the squared length of a row in the cells with the longest
    // columns, and the units of two rows that may be off their curves.
    displaced() {
      const joined = []; // numbers that tables join
      for (const J of new Set(this.sets.map((S) => `${S.filter((i) => this.own[i].parts)}`))) {
        const own = J ? J.split(",").map(Number) : [], near = joined.filter((x) => own.some((i) => x.includes(i)));
        joined.push([...new Set([...own, ...near.flat()])]);
      }
      const cells = most(joined.map((J) => product(J.map((i) => this.own[i].parts))));
      need(cells <= 64n, "too many numbers together", Unknown);
      if (!joined.flat().some((i) => this.own[i].squares)) return [0n, 0n];
      const rounded = [...this.multipliers.values()].filter(({ T }) => !T.some((i) => this.domain[i].has("unit")));
      const lengths = rounded.map(({ T, s }) => s * s * product(this.measuring(T).map((own) => own.longest)));
      return [sum(lengths), 7n * cells];
    }

    // ---- 5. Privacy
    *checkPrivacy() {
      const { record, plan, noise } = this;
      yield* this.checkUnit();
      yield* this.checkMeasured();
      const stated = at(noise, "integer_sensitivity_squared");
      const moved = Fraction.of(yield* this.moved()), [V, h] = this.displaced(), u = this.unit;
      const change = total([moved.times(u * (u + h)), new Fraction(h * (u + h) * V)]);
      const exact = ((change.above + change.below - 1n) / change.below) * this.growth;
      const isFit = stated === exact || (this.many && stated > exact); // many: a bound, by floats
      need(typeof stated === "bigint" && isFit, `the squared sensitivity is ${exact}`);
      this.say(`squared sensitivity ${stated}: over all neighbours by ${at(record, "neighbors")}`);
      const sigma = Fraction.of(at(noise, "sigma")), rho = Fraction.of(at(noise, "rho_of_one_row"));
      need(sigma.above >= 0n && fits(Fraction.of(stated), rho.times(2n).times(sigma).times(sigma)), "rho_of_one_row");
      const k = at(record, "rows_per_person"), spent = at(record, "rho");
      const ranges = (plan.get("ranges") ?? []).map((own) => Fraction.of(at(own, "rho")));
      need(ranges.every((own) => own.above >= 0n), "rho");
      need(fits(total([rho.times(k * k), ...ranges]), Fraction.of(spent)), "rho");
      const budget = at(record, "privacy"), whole = Fraction.of(at(budget, "rho"));
      need(Fraction.of(spent).atMost(whole), "more was spent than the budget");
      this.say(`rho = ${said(spent)}: ${k}^2 sensitivity^2 / (2 sigma^2), and ranges`);
      if (ranges.length) this.unchecked.push("the noise with which ranges were found");
      this.checkGuarantee(budget, whole);
    }

    checkGuarantee(budget, whole) {
      const kind = at(this.plan, "privacy", "definition");
      need(["zCDP", "GDP", "KL", "ApproxDP", "TV", "PerRecord"].includes(kind), `the guarantee ${said(kind)}`, Unknown);
      const given = [...at(this.plan, "privacy")].filter(([key]) => key !== "definition");
      if (kind === "PerRecord") {
        const base = new Map([["definition", "zCDP"], ["rho", at(budget, "rho")]]);
        const stated = new Map([["privacy", base], ["scale", at(budget, "scales")]]);
        const isGrowing = [...at(budget, "scales").values()].every((x) => numeric(x) > 0);
        need(isGrowing && same(new Map(given), stated), "the budgets of rows");
        need(at(budget, "definition") === "per-record zCDP", "another definition of privacy");
        this.say(`PerRecord: rho of rows of zeros, which grows with ${[...at(budget, "scales").keys()].join(", ")}`);
        return;
      }
      need(given.every(([key, x]) => budget.has(key) && same(budget.get(key), x)), "the budget is not that of the plan");
      const text = given.map(([key, x]) => `${key} = ${said(x)}`).join(", ");
      const [name, key] = { zCDP: ["zCDP", "rho"], GDP: ["Gaussian DP", "mu"], KL: ["KL privacy", "alpha"] }[kind] ?? [];
      if (!name) {
        this.unchecked.push(`that rho = ${said(at(budget, "rho"))} implies ${kind}, ${text}`);
        return;
      }
      need(at(budget, "definition") === name && given.length === 1 && given[0][0] === key, "another definition of privacy");
      const x = Fraction.of(given[0][1]), limit = kind === "GDP" ? x.times(x).over(2n) : x;
      need(x.above > 0n && whole.atMost(limit), `rho is too large for ${kind}`);
      this.say(`${kind}, ${text}: its Gaussians have this rho`);
    }

    // ---- 6. Words of the record
    // The unit of privacy in words.
    unitText() {
      const { record, plan } = this, k = at(record, "rows_per_person"), person = at(plan, "person");
      const noun = isTrue(plan.get("per_person") ?? null) ? "record" : "row";
      if (person === null) return k === 1n ? "one row" : `one person of at most ${k} rows`;
      return `one person (column ${quote(person)}), of whom at most ${k} ${noun}${k === 1n ? " is" : "s are"} counted`;
    }

    // Which data are neighbours, in words.
    relationText() {
      const { record, plan } = this, k = at(record, "rows_per_person"), person = at(plan, "person");
      const moves = at(record, "neighbors") === "add-remove", listed = plan.get("public") ?? [];
      let text = `one ${k === 1n ? "row" : `person with at most ${k} rows`} more or less; the number of rows is private`;
      if (person !== null) {
        const how = moves ? "more or less, with any number of rows"
          : "exchanged for another, each with any number of rows, also with none that fit";
        text = `one person, a value of ${quote(person)}, ${how}; the number of rows is private`;
      } else if (!moves) {
        text = k === 1n ? "one row exchanged for another" : `at most ${k} rows of one person exchanged for as many others`;
        text += listed.length ? `, ${k > 1n ? "row by row " : ""}of the same ${listed.join(" × ")}` : "";
        text += `; ${listed.length ? "tables of these alone are" : "the number of rows is"} public and exact`;
      }
      return `${at(record, "neighbors")} (${text})`;
    }

    *checkRequest() {
      const { record, plan } = this, terms = record.get("workload") ?? this.entries;
      need(same(this.schema.map((own) => own.get("name")), this.names), "the schema has other attributes than the domain");
      this.domain.forEach((entry, i) => {
        const own = new Map([...entry].map(([key, x]) => [key, ["labels", "groups"].includes(key) ? words(x) : x]));
        need(same(own, this.schema[i]), `${quote(this.names[i])} is not that of the schema`);
      });
      need(at(record, "neighbors_meaning") === this.relationText(), "neighbors_meaning");
      const asked = terms.map((term) => this.at(term.get("bases")?.keys() ?? at(term, "attributes")));
      const sorted = (S) => `${[...S].sort((a, b) => a - b)}`;
      need(same([...new Set(asked.map(sorted))], this.sets.map(String)), "the workload asks for other tables");
      need(same(this.asked.map(String), asked.map(sorted)), "the plan's workload");
      need(this.terms.every((own, k) => same(own, terms[k].get("bases") ?? new Map([...own].map(([name]) => [name, "identity"])))),
        "the bases");
      const bases = record.has("workload") ? terms.map((term) => [...at(term, "bases").values()]) : null;
      yield* this.checkDigest(asked, terms.map((term) => at(term, "weight")), bases, []);
    }

    // Compare what the record states twice, and the digest of the request.
    *checkDigest(asked, weights, bases, more) {
      const { record, plan } = this, unit = this.unitText();
      need(at(record, "privacy_unit") === unit, `privacy_unit is not ${quote(unit)}`);
      need(same(at(plan, "weights"), isTrue(at(plan, "targets")) ? null : weights), "weights of the plan");
      const request = [];
      if (this.weight) request.push(["weight", [at(this.weight, "column"), nineDigits(at(this.weight, "most"))]]);
      for (const key of ["person", "per_person", "public", "ranges", "title", "source"]) {
        if ((plan.get(key) ?? null) !== null) request.push([key, plan.get(key)]);
      }
      request.push(["schema", at(plan, "schema")], ["marginals", asked.map((S) => S.map(BigInt))]);
      request.push(["weights", weights.map(nineDigits)], ["p", at(plan, "p")], ["neighbors", at(record, "neighbors")]);
      request.push(["rho", nineDigits(at(record, "privacy", "rho"))]);
      if (at(plan, "privacy").has("scale")) request.push(["scale", at(plan, "privacy", "scale")]);
      request.push(["rows_per_person", at(record, "rows_per_person")], ...more);
      let wholes = [request];
      if (bases) {
        const first = ["bases", bases];
        wholes = [[first, ...request], [first, ["catch-alls", "in no query that takes cells in order"], ...request]];
      }
      const digests = [];
      for (const whole of wholes) {
        digests.push(yield* sha256(new TextEncoder().encode(dumps(new Map(whole)))));
      }
      need(digests.includes(at(record, "request_sha256")), "request_sha256 is not that of the request");
      this.say(`${at(record, "neighbors")}, ${unit}: all that the record states twice agrees`);
    }

    // ---- 7. Deviations
    *checkTables() {
      need(dumps(at(this.record, "intervals")) === dumps(LEVELS), "intervals");
      for (let k = 0; k < this.sets.length; k++) {
        const name = at(this.entries[k], "file"), S = this.sets[k], n = this.cells(S);
        need(at(this.entries[k], "cells") === BigInt(n), `the number of cells of ${name}`);
        const table = yield* this.readTable(this.entries[k], name, S, k);
        if (!table) continue;
        this.tables.set(`${S}`, table);
        yield* this.checkIntegers(name, S, table, this.wanted(S));
      }
    }

    // The numbers of a table that is the k-th one, after all checks but those of integers; null if they are not read.
    *readTable(entry, path, S, k, spread = 1, close = 1e-14) {
      const name = at(entry, "file"), isTable = isRead(name);
      if (!isTable && this.cells(S) > MOST_CELLS) {
        this.skip(`numbers in ${name}, and what the record says of them`);
        return null;
      }
      const first = name.endsWith(".xlsx") ? (BigInt(k + 1) << 20n) + 1n : 0n; // a sheet for each table, below its heads
      const several = this.record.has("executors") || this.sets.length > 1000; // in one file
      const packed = name.endsWith(".parquet") && several;
      const row = at(entry, "first_row");
      need(packed ? typeof row === "bigint" && row >= 0n : row === first, `the first row of ${name}`);
      const expected = (yield* this.deviations(S)).map((sd) => sd * spread), tolerance = S.some((i) => this.own[i].solved) ? 1e-9 : close;
      const smallest = least(expected), largest = most(expected);
      need(!largest || smallest > 2 ** -96 * largest, "variances are too small to be checked");
      if (!isTable) this.skip(`numbers in ${name.replace(/[^/]+?(?=(\+sdmx)?\.\w+$)/, "*")}`);
      else need(this.files.has(path), `${path} is not there`, Unknown);
      const table = isTable ? yield* this.rowsOf(path, name, S, k + 2) : null;
      need(!table || table.deviations.every((sd, cell) => isClose(sd, expected[cell], tolerance)),
        `a standard deviation in ${name} is not that of its noise`);
      this.checkStated(entry, name, table?.deviations ?? expected, table ? 0 : tolerance);
      if (!table) return null;
      const exact = table.estimates.map(parts), bits = Math.max(0, ...new Set(exact.map(([, e]) => -e)));
      // noise may have cancelled numbers larger than these
      const size = table.estimates.reduce((a, x) => Math.max(a, Math.abs(x)), 0) + 8 * most(table.deviations);
      table.error = size * Math.sqrt(table.estimates.length) * 2 ** (S.length / 2 - 51);
      return { ...table, bits, values: exact.map(([m, e]) => m << BigInt(bits + e)) };
    }

    // The columns of a table, with the labels and intervals that it must have.
    *rowsOf(path, name, S, sheet) {
      const own = S.map((i) => this.own[i]), size = this.cells(S), columns = NUMBERS.map(() => []);
      const heads = [...S.map((i) => this.names[i]), ...NUMBERS];
      let count = 0;
      const answers = (this.record.get("workload") ?? []).filter((entry) => entry.get("file") === name);
      const sheets = [1, 2].map((each) => 1 + this.sets.length + each * answers.length); // answers with means have two
      if (name.endsWith(".xlsx")) this.skip(`totals, answers, cover and styles of ${name}`);
      for (const row of rowsIn(this.files.get(path), name, heads, sheet, sheets)) {
        let place = count++;
        need(count <= size && row.length === heads.length, `the rows of ${name}`);
        for (let k = S.length - 1; k >= 0; k--) {
          need(row[k] === own[k].texts[place % own[k].n], `the labels of ${name}`);
          place = Math.floor(place / own[k].n);
        }
        const [x, sd, low, high] = row.slice(S.length).map(double), half = QUANTILE * sd;
        need(low === x - half && high === x + half, `${name}: an interval is not x ± z sd`);
        [x, sd, low, high].forEach((number, k) => columns[k].push(number));
        if (count % 256 === 0) yield;
      }
      need(count === size, `the rows of ${name}`);
      const [estimates, deviations, lows, highs] = columns;
      return { S, estimates, deviations, lows, highs };
    }

    // Standard deviations of the cells of S, which is inside a table.
    *deviations(S, own = S.map((i) => this.own[i])) {
      const inside = [...this.noises.values()].filter(({ T }) => isInside(T, S));
      const top = inside.reduce((a, { v }) => (a.atMost(v) ? v : a), new Fraction(0n));
      const kinds = own.map((a) => [a, ...new Set(a.others.values())]); // by which matrix
      const factors = kinds.map(([a, ...others]) => [a.share.map((x) => (x * x) >> BITS), a.variance, ...others.map((b) => b.variance)]);
      const weights = new Map(inside.map(({ T, v }) => {
        const key = this.keyOf(T), used = own.map((a) => a.others.get(key) ?? a);
        const K = S.map((i, k) => (T.includes(i) ? 1 + kinds[k].indexOf(used[k]) : 0));
        return [String.fromCharCode(...K), top.above ? v.over(top).scaled : 0n];
      }));
      const squares = yield* variances(factors, weights), scale = Math.sqrt(top.number);
      return squares.map((x) => Math.sqrt(Number(x) / 2 ** 256) * scale);
    }

    // What the record says of the deviations of a table.
    checkStated(entry, name, deviations, tolerance) {
      const given = at(entry, "standard_deviation"), stated = Array.isArray(given) ? given : [given, given];
      const ends = [least(deviations), most(deviations)];
      need(stated.length === 2 && ends.every((sd, i) => isClose(numeric(stated[i]), sd, tolerance)), `the deviation that is stated of ${name}`);
    }

    // ---- 8. Estimates
    // The vectors of S that must be integers, times a factor.
    wanted(S) {
      const found = [...this.multipliers.values()].filter(({ T }) => isInside(T, S))
        .map(({ T, s }) => ({ T, factor: new Fraction(s * this.unit).over(this.most), counts: false }));
      const known = S.filter((i) => this.public.includes(i));
      for (const T of this.moving ? [] : subsets(known)) found.push({ T, factor: new Fraction(1n), counts: true });
      return found;
    }

    // The measured vector of T, or the sums over all attributes but T, of a table of S.
    *margin(S, values, T, counts) {
      const used = this.measuring(T);
      for (let k = S.length - 1; k >= 0; k--) {
        if (counts && T.includes(S[k])) continue;
        const own = used[T.indexOf(S[k])] ?? this.own[S[k]];
        values = yield* along(values, this.cells(S.slice(0, k)), own, T.includes(S[k]));
      }
      return values;
    }

    // Compare the integers that got noise, and exact counts, with those of other tables.
    *checkIntegers(name, S, { values, bits, error }, wanted) {
      for (const { T, factor, counts } of wanted) {
        const measured = counts ? [] : this.measuring(T);
        const scale = factor.times(product(measured.map((a) => a.divisor)));
        let slack = error * Math.sqrt(Number(product(measured.map((a) => a.longest)))) * scale.number;
        const key = `${counts ? "counts" : ""} ${T}`;
        if (this.alone && slack > 0.25 && this.sets.filter((R) => isInside(T, R)).length === 1) {
          this.known.set(key, { whole: [], slack, counts });
          continue;
        }
        const found = yield* this.margin(S, values, T, counts);
        const below = scale.below << BigInt(bits), { above } = scale;
        const whole = found.map((x) => floor(2n * x * above + below, 2n * below)); // the nearest
        slack += 4 * measured.reduce((a, b) => a * b.blur, 1) * 2 ** -53 * Number(most(whole.map(abs)));
        need(!counts || whole.every((x) => x >= 0n), `${name}: a public count is negative`);
        if (slack < 0.25) {
          const limit = Fraction.of(slack).times(below);
          need(found.every((x, k) => abs(x * above - whole[k] * below) <= limit.above / limit.below + 1n),
            `${name} is not made of integers as stated`);
        }
        if (!this.known.has(key)) this.known.set(key, { whole, slack, T, scale, counts });
        const first = this.known.get(key);
        const apart = Math.max(slack, first.slack) < 0.25 ? 0n : BigInt(Math.ceil(slack + first.slack)) + 1n;
        need(whole.every((x, k) => abs(x - first.whole[k]) <= apart), `${name} disagrees with another table on a margin`);
        yield;
      }
    }

    sayIntegers(known) {
      const fine = known.filter(({ slack }) => slack < 0.25).length;
      this.say("standard deviations and intervals of tables: of sigma, multipliers and matrices");
      this.say(`${known.length} measurements, ${fine} as integers: the same from all tables`);
      if (fine < known.length) this.unchecked.push(`${known.length - fine} measurements: doubles do not resolve integers`);
    }

    // ---- 9. Optimality
    *checkOptimality() {
      const stated = at(this.record, "optimality"), number = (key) => Fraction.of(at(stated, key)).number;
      const upper = number("gamma"), lower = number("gamma_lower"), gap = number("certified_gap");
      need(0 <= lower && lower <= upper && (lower || !upper) && gap === (upper ? upper / lower - 1 : 0), "gamma");
      if (at(this.plan, "p") !== "2.0" || this.own.some((a) => a.solved) || this.record.has("workload")) {
        this.unchecked.push("the bracket of gamma, for this workload or norm");
        return;
      }
      const weights = this.entries.map((entry) => Fraction.of(at(entry, "weight")));
      const sizes = weights.map((w) => new Fraction(abs(w.above), w.below));
      const largest = sizes.reduce((a, b) => (a.atMost(b) ? b : a));
      const top = largest.above ? largest : new Fraction(1n); // squares of small weights leave the doubles
      const parts = this.sets.map((S, k) => weights[k].over(top).times(weights[k].over(top)).over(BigInt(this.cells(S))));
      const losses = new Map(), measured = [...this.multipliers.values()];
      for (const { T } of measured) {
        losses.set(`${T}`, total(parts.filter((_, k) => isInside(T, this.sets[k]))));
        yield;
      }
      const errors = measured.map(({ T, s }) => losses.get(`${T}`).over(s * s)
        .times(new Fraction(product(T.map((i) => this.own[i].N ** 2n * this.own[i].variance[0])), ONE ** BigInt(T.length))));
      const reached = Math.sqrt(total(errors).times(at(this.noise, "integer_sensitivity_squared")).over(this.unit ** 2n).number) * top.number;
      need(isClose(upper, reached, 1e-4), "gamma is not that of the multipliers");
      this.say(`gamma = ${said(upper)}: the multipliers reach ${said(reached)} at unit sensitivity`);
      let rows = new Fraction(0n);
      if (this.exchanged) {
        if (!stated.has("witness") || stated.get("witness") === null) {
          this.unchecked.push("gamma_lower, whose witness is not in the record");
          return;
        }
        rows = losses.get("") ?? rows;
        const pairs = stated.get("witness").map((x) => [[...new Set(this.at(at(x, "differing")))], Fraction.of(at(x, "weight"))]);
        const whole = total(pairs.map(([, w]) => w));
        need(pairs.every(([D, w]) => w.above >= 0n && !D.some((i) => this.public.includes(i)))
          && Math.abs(whole.number - 1) < 1e-9, "the witness");
        const ratio = (i) => new Fraction(-1n, this.own[i].N > 1n ? this.own[i].N - 1n : 1n);
        for (const { T } of measured) {
          const alike = total(pairs.map(([D, w]) => D.filter((i) => T.includes(i)).reduce((x, i) => x.times(ratio(i)), w)));
          losses.set(`${T}`, losses.get(`${T}`).times(new Fraction(2n).plus(alike.times(-2n).over(whole))));
          yield;
        }
      }
      const rootOf = (fraction) => new Fraction(root(floor(fraction.above << (2n * BITS), fraction.below), 2n), ONE);
      const sums = total(measured.map(({ T }) => rootOf(losses.get(`${T}`)).times(product(T.map((i) => this.own[i].N - 1n)))));
      const proven = rootOf(sums.times(sums).plus(rows)).number * top.number;
      need(lower <= proven * (1 + 2 ** -51), `gamma_lower is not proven, but ${said(proven)}`);
      need(proven <= upper * (1 + 1e-12), "gamma is less than its proven lower end");
      this.say(`gamma_lower = ${said(lower)}: uniform on all rows, or on pairs that differ as stated`);
    }
  }

  // ---- Streams
  // The largest sum of |C'C| over both members of pairs from sets of at most k ticks, each two apart;
  // an upper bound where there are millions of sets.
  function* largestChange(rows, k, apart) {
    const n = rows.length, exact = rows.map((_, i) => rows.map((_, j) =>
      abs(sum(rows.slice(Math.max(i, j)).map((row) => row[i] * row[j])))));
    const isSmall = sum(exact.flat()) < 1n << 52n; // doubles are exact, and faster
    const X = isSmall ? exact.map((row) => row.map(Number)) : exact, none = isSmall ? 0 : 0n, two = isSmall ? 2 : 2n;
    const choose = (from, size) => Math.round(Array.from({ length: size }, (_, j) => Math.max(from - j, 0) / (j + 1)).reduce((a, b) => a * b, 1));
    const sets = Array.from({ length: k }, (_, j) => choose(n - j * (apart - 1), j + 1)).reduce((a, b) => a + b, 0);
    if (k < 3 || k ** 2 * sets < 2 ** 23) {
      let best = none, count = 0;
      const left = [[0, none, X.map((row, i) => row[i]), k]]; // the next tick at the earliest; what each adds
      while (left.length) {
        if (++count % 64 === 0) yield;
        const [first, value, gains, more] = left.pop(), ends = gains.slice(first);
        if (ends.length && value + most(ends) > best) best = value + most(ends);
        for (let i = first; more > 1 && i < n; i++) {
          left.push([i + apart, value + gains[i], gains.map((g, j) => g + two * X[i][j]), more - 1]);
        }
      }
      return BigInt(best);
    }
    const largest = (weights, size) => {
      let before = Array(n + 1).fill(none);
      for (let round = 0; round < size; round++) {
        const best = [none];
        weights.forEach((weight, j) => best.push(most([best[j], before[Math.max(j + 1 - apart, 0)] + weight])));
        before = best;
      }
      return before[n];
    };
    const bounds = []; // each pair is counted at both of its ticks, or at the later, or at the earlier
    for (const [early, late] of [[1, 1], [2, 0], [0, 2]]) {
      const shares = [];
      for (let i = 0; i < n; i++) {
        const times = (j) => (Math.abs(i - j) < apart ? 0 : j < i ? early : late);
        shares.push(X[i][i] + largest(X[i].map((x, j) => x * (isSmall ? times(j) : BigInt(times(j)))), k - 1));
        yield;
      }
      bounds.push(largest(shares, k));
    }
    return BigInt(least(bounds));
  }

  class Stream extends Folder {
    *open(record) {
      const noise = new Map(at(record, "noise"));
      noise.set("rho_of_one_row", at(noise, "rho_of_one_row_per_report"));
      this.record = new Map([...record, ["rows_per_person", at(record, "rows_per_person_and_tick")], ["noise", noise],
        ["rho", at(record, "rho_of_all_ticks")], ["person", record.get("person") ?? null]]);
      yield* this.openPlan();
      need(["public", "weight", "ranges", "per_person"].every((key) => !this.plan.has(key)), "no stream's plan");
      need(!isTrue(at(this.plan, "targets")), "accuracy targets of a stream", Unknown);
      [this.growth, this.ticks] = [at(noise, "time_sensitivity_squared"), at(record, "ticks")];
      const sizes = ["n", "apart", "reports"].map((key) => at(this.ticks, key));
      need(sizes.every((x) => typeof x === "bigint" && x > 0n), "ticks");
      const [n, apart, reports] = sizes.map(Number);
      [this.apart, this.reports] = [apart, Math.min(reports, Math.floor((n - 1) / apart) + 1)];
      this.sets = [...new Map(this.asked.map((S) => [`${S}`, S])).values()];
      this.rows = at(record, "time_matrix").map(integers);
      need(same(this.rows.map((row) => BigInt(row.length)), Array.from({ length: n }, (_, i) => BigInt(i + 1))), "time_matrix is not lower triangular");
      need(this.rows.every((row) => row.at(-1) > 0n), "a tick is not measured");
      Object.assign(this, { periods: [], totals: new Map(), slacks: [], ticksRead: [] });
    }

    *check() {
      const parts = new Set([...this.files.keys()].map((name) => name.split("/")[0]));
      const usual = ["stream.json", "ticks", "private", "verifier", "signature.json"];
      const odd = [...this.files.keys()].some((name) => name.startsWith("signature.json/"));
      need(!odd && [...parts].every((name) => usual.includes(name)), "files of no stream");
      const folders = new Set([...this.files.keys()].filter((name) => name.startsWith("ticks/")).map((name) => name.split("/")[1]));
      const expected = Array.from({ length: folders.size }, (_, t) => String(t + 1).padStart(4, "0"));
      need(same([...folders].sort(), expected) && expected.length <= this.rows.length, "a tick missing");
      let missing = 0;
      for (let t = 1; t <= folders.size; t++) missing += yield* this.checkFilesOf(t, `ticks/${expected[t - 1]}/`);
      this.say(`${folders.size} ticks from 1 on: each of their files has the stated sha256`);
      if (missing) this.unchecked.push(`${missing} files that this page does not hold`);
      if (parts.has("private")) this.unchecked.push("private/: never publish it");
      yield* this.checkPrivacy();
      yield* this.checkRequest();
      for (const [k, own] of this.ticksRead.entries()) yield* this.checkTick(k + 1, `ticks/${expected[k]}/`, own);
      this.say(`${folders.size} ticks from 1 on: that tables are added up`);
      this.sayIntegers(this.slacks);
      this.unchecked.push("time_lower and certified_gap, which have no witness; ledger; reports of a person");
    }

    // ---- 1. Files
    // The record and the files of one tick; returns the number of files that are not held.
    *checkFilesOf(t, place) {
      const files = within(this.files, place);
      need(files.has("release.json"), `tick ${t} has no release.json`);
      const own = json(decoded(files.get("release.json")));
      need(at(own, "format") === "gaussnoise.stream-tick/1" && at(own, "tick") === BigInt(t), `no tick ${t}`);
      need(at(own, "private") === true, "a simulation, which is not private");
      const names = ["period", "cumulative"].flatMap((what) => at(own, what).map((entry) => `${what}/${at(entry, "file")}`));
      this.ticksRead.push(own);
      return (yield* this.checkFiles("release.json", names, [], files, at(own, "files"))).missing.length;
    }

    // ---- 2. Unit of privacy
    *checkUnit() {
      yield* super.checkUnit();
      need(!this.exchanged || at(this.record, "person") === null, "exchanged persons");
      need(!this.ticks.has("corrections") || (!this.exchanged && at(this.record, "person") === null), "corrections");
      const lowest = yield* largestChange(this.rows, this.reports, this.apart);
      need(typeof this.growth === "bigint" && this.growth >= lowest, `ticks' sensitivity is ${lowest}`);
      this.say(`squared sensitivity ${this.growth} of ticks, ${lowest} at least: over all reports`);
    }

    // ---- 6. Words of the record
    unitText() {
      const one = super.unitText(), k = this.reports, { apart } = this, rows = at(this.record, "rows_per_person");
      if (at(this.plan, "person") !== null) {
        return `${one} in each of at most ${k} ticks${apart > 1 ? `, each two at least ${apart} apart` : ""}`;
      }
      if (k === 1) return rows === 1n ? one : `${one}, in one tick`;
      const each = rows === 1n ? "" : ` of at most ${rows} rows each`;
      return `one person of at most ${k} reports${each}, ${apart > 1 ? `${apart} ticks apart or more` : "in different ticks"}`;
    }

    // Who takes part when, in words.
    takingPart() {
      const person = at(this.plan, "person"), k = this.reports, rows = at(this.record, "rows_per_person");
      const own = rows === 1n ? "one row" : `at most ${rows} rows`;
      const one = person !== null ? `all rows of one value of ${quote(person)}` : rows === 1n ? own : `${own} of one person`;
      const change = this.moving ? "more or less" : `exchanged ${rows === 1n ? "for another" : "for as many others"}`;
      const apart = k > 1 && this.apart > 1 ? `, each two at least ${this.apart} ticks apart` : "";
      if (this.ticks.get("enforced") === true && person !== null) {
        return `${one} ${change}, in any ticks; a registry lets at most ${k} count${apart}`;
      }
      if (k === 1) return `${one} ${change}, in one tick`;
      return `one person with ${person === null ? own : "any number of rows"} ${change} in each of at most ${k} ticks${apart}`;
    }

    *checkRequest() {
      const { record } = this, ending = ENDINGS[at(record, "table_format")];
      need(at(record, "participation") === this.takingPart(), `not ${quote(this.takingPart())}`);
      const bases = this.terms.map((term) => [...term.values()]), isPlain = bases.flat().every((x) => x === "identity");
      yield* this.checkDigest(this.asked, at(this.plan, "weights"), isPlain ? null : bases, [["ticks", this.ticks]]);
      need(ending && at(record, "stream").length === 32, "table_format");
      this.ticksRead.forEach((own, k) => {
        const t = k + 1, keys = ["stream", "ticks", "neighbors", "privacy_unit", "participation", "privacy", "rho_of_all_ticks", "person",
          "rows_per_person_and_tick", "rows_counted", "epsilon_delta_of_all_ticks", "on_outside", "disclaimers"];
        need(keys.every((key) => same(own.get(key) ?? null, record.get(key) ?? null)), `tick ${t} is of another stream`);
        const meant = [own.get("cumulative_meaning"), own.get("period_meaning")];
        need(same(meant, [`all rows of ticks 1 to ${t}`, `the rows of tick ${t} alone`]), `meaning of tick ${t}`);
        need(dumps(at(own, "intervals")) === dumps(LEVELS), "intervals");
        need(/^[0-9a-f]{64}$/.test(at(own, "measurements_sha256")), "measurements_sha256");
        need([...at(own, "period"), ...at(own, "cumulative")].every((entry) => at(entry, "file").endsWith(ending)), "table_format");
      });
    }

    // ---- 7. Deviations, and 8. Estimates
    // The tables of one tick.
    *checkTick(t, place, own) {
      this.known = new Map();
      const now = new Map();
      this.periods.push(now);
      for (const what of ["period", "cumulative"]) {
        const weights = Array.from({ length: t }, (_, i) => (what === "cumulative" || i === t - 1 ? 1n : 0n)), row = Array(t).fill(0n);
        for (let j = t - 1; j >= 0; j--) { // row times the time matrix is weights
          let rest = 0n;
          for (let i = j + 1; i < t; i++) rest += row[i] * this.rows[i][j];
          row[j] = floor(ONE * weights[j] - rest, this.rows[j][j]);
        }
        this.spread = Math.sqrt(new Fraction(sum(row.map((x) => x * x)), ONE ** 2n).number);
        const listed = at(own, what).map((entry) => this.inOrder(at(entry, "attributes")));
        need(same(listed.map(String).sort(), this.sets.map(String).sort()), `other tables in tick ${t}`);
        for (let k = 0; k < listed.length; k++) {
          const S = listed[k], entry = at(own, what)[k], file = `${what}/${at(entry, "file")}`, key = `${S}`;
          const table = yield* this.readTable(entry, `${place}${file}`, S, k, this.spread, 1e-9);
          if (!table) continue;
          const name = `${file} of tick ${t}`;
          if (what === "period") {
            const before = this.totals.get(key);
            need(before || t === 1, name);
            this.totals.set(key, table.estimates.map((x, cell) => (before ? before[cell] + x : x)));
            now.set(key, table);
            const wanted = this.wanted(S);
            yield* this.checkIntegers(name, S, table, wanted.filter(({ counts }) => counts));
            yield* this.checkIntegers(name, S, this.combined(key), wanted.filter(({ counts }) => !counts));
          } else this.tables.set(key, table);
          need(what === "period" || same(table.estimates, this.totals.get(key)), `${name} is not the sum of ticks`);
        }
      }
      this.slacks.push(...[...this.known.values()].filter(({ counts }) => !counts));
    }

    // The combination of the ticks so far that got noise.
    combined(key) {
      const row = this.rows[this.periods.length - 1], tables = this.periods.map((own) => own.get(key));
      const bits = Math.max(...tables.map((own) => own.bits));
      const values = tables[0].values.map((_, cell) =>
        sum(tables.map((own, i) => (row[i] * own.values[cell]) << BigInt(bits - own.bits))));
      const error = tables.reduce((a, own, i) => a + Number(abs(row[i])) * own.error, 0);
      return { values, bits, error };
    }

    checkStated(entry, name, deviations, tolerance) {
      const expected = Math.sqrt(deviations.reduce((a, sd) => a + sd * sd, 0) / deviations.length);
      need(isClose(numeric(at(entry, "rms_standard_deviation")), expected, tolerance || 1e-12), `the deviation that is stated of ${name}`);
    }
  }

  // ---- Combined folders
  // The files of a folder inside, by their paths in it.
  const within = (files, place) => new Map([...files].filter(([name]) => name.startsWith(place))
    .map(([name, bytes]) => [name.slice(place.length), bytes]));

  class Combined extends Folder {
    *open(record) {
      this.record = record;
      need(at(record, "private") === true, "a simulation, which is not private");
      this.lists = readLists(record, this.files, this.whole);
      this.entries = at(record, "marginals");
      this.sources = [];
      const known = new Map(), used = new Map();
      for (const source of at(record, "combined_from")) {
        const folder = at(source, "folder"), files = within(this.files, `${folder}/`);
        need(/^releases\/[^/]+$/.test(folder), "a release in another place");
        need(files.has("release.json"), `${folder} is not there`, this.whole ? Fault : Unknown);
        need((yield* sha256(files.get("release.json"))) === at(source, "sha256"), "the sha256 of a release");
        const one = new Folder(files, this.whole), inner = json(decoded(files.get("release.json")));
        need(inner.get("format") === "gaussnoise.tables/3", "no release", Unknown);
        yield* one.open(inner);
        this.sources.push([folder.split("/")[1], one]);
        const asked = new Set(one.sets.flat());
        const matricesOf = (a) => new Map([...a.others].map(([key, other]) => [key, other.matrix]));
        const alike = (a, b) => same([a.texts, a.matrix, a.divisor, matricesOf(a)], [b.texts, b.matrix, b.divisor, matricesOf(b)]);
        one.names.forEach((name, i) => {
          const own = [one.domain[i], one.own[i]];
          if (!known.has(name)) known.set(name, own);
          if (!asked.has(i)) return;
          if (!used.has(name)) used.set(name, own);
          need(alike(used.get(name)[1], own[1]), `${quote(name)} is measured differently`);
        });
      }
      const all = [...new Map([...known, ...used]).values()];
      this.setAttributes(all.map(([entry]) => entry), all.map(([, own]) => own));
    }

    *check() {
      const { record, sources } = this, listed = at(record, "combined_from");
      this.sayFiles(yield* this.checkFiles("release.json", [...this.lists, ...this.entries.map((e) => at(e, "file"))], ["release.png", "answers/", "releases/", "verifier/"]));
      const there = new Set([...this.files.keys()].filter((name) => name.startsWith("releases/")).map((name) => name.split("/")[1]));
      need(same([...there].sort(), [...new Set(sources.map(([name]) => name))].sort()), "releases that are not combined");
      need(sources.length === there.size && sources.length > 1, "a release twice");
      let spent = new Fraction(0n);
      const first = sources[0][1].plan;
      for (let k = 0; k < sources.length; k++) {
        const [name, one] = sources[k];
        yield* one.check();
        this.include(name, one);
        const alike = ["neighbors", "neighbors_meaning", "rows_per_person", "person"].every((key) => same(at(one.record, key), at(record, key)));
        need(alike, "another unit of privacy");
        const counted = ["public", "per_person", "weight"].every((key) => same(one.plan.get(key) ?? null, first.get(key) ?? null));
        need(counted, "other rows or counts");
        const stated = ["marginals", "rho", "title"].map((key) => at(listed[k], key));
        const own = [one.entries.map((entry) => at(entry, "attributes")), at(one.record, "rho"), one.plan.get("title") ?? toml(at(one.plan, "schema")).get("about")?.get("title") ?? null];
        need(same(stated, own), "a release");
        spent = spent.plus(Fraction.of(at(listed[k], "rho")));
      }
      need(fits(spent, Fraction.of(at(record, "rho"))), "rho is not the sum of all");
      this.say(`rho = ${said(at(record, "rho"))}: the sum of all releases'`);
      need(dumps(at(record, "intervals")) === dumps(LEVELS), "intervals");
      const left = [...this.unchecked.filter((line) => line.includes("numbers in ")),
        ...this.entries.map((entry) => at(entry, "file")).filter((name) => !isRead(name)).map((name) => `numbers in ${name}`)];
      need(!left.length, `${left.join(", ")}; hint: gaussnoise convert FOLDER --format csv`, Unknown);
      this.sets = this.entries.map((entry) => this.inOrder(at(entry, "attributes")));
      const means = this.means(), wanted = new Set(sources.flatMap(([, one]) => one.sets.map((S) => `${this.at(S.map((i) => one.names[i]))}`)));
      need(same([...wanted].sort(), this.sets.map(String).sort()), "other tables");
      for (let k = 0; k < this.sets.length; k++) {
        const S = this.sets[k], name = at(this.entries[k], "file");
        need(at(this.entries[k], "cells") === BigInt(this.cells(S)), `the number of cells of ${name}`);
        const table = yield* this.readTable(this.entries[k], name, S, k, 1, 1e-12);
        if (table) yield* this.checkMeans(name, S, table, means);
        if (table) this.tables.set(`${S}`, table);
      }
      this.say(`${means.length} measurements: means of the releases', weighted by their precision`);
      this.unchecked.push("whether the releases are of the same rows: agreement, id, weight; answers/");
    }

    // The mean of every measurement over ONE, and how exactly it is known; sets their variances.
    means() {
      const every = new Map();
      for (const [, one] of this.sources) {
        for (const [key, { whole, slack, T, scale, counts }] of one.known) {
          const axes = this.at(T.map((i) => one.names[i])), unit = Fraction.of(scale);
          need(axes.every((i, k) => !k || i > axes[k - 1]), "attributes in another order", Unknown);
          const values = whole.map((x) => floor((x * unit.below) << BITS, unit.above));
          const blur = slack >= 0.25 ? (slack + 1) / unit.number : 0;
          const share = counts ? new Fraction(1n) : new Fraction(1n).over(one.noises.get(key.trim()).v);
          const name = `${counts ? "counts" : ""} ${axes}`;
          every.set(name, [...(every.get(name) ?? []), { T: axes, values, share, blur, counts }]);
        }
      }
      return [...every.values()].map((found) => {
        const [{ T, counts }] = found, seen = new Set(found.map(({ values }) => values.join()));
        need(counts || seen.size === found.length, "the same noise twice");
        need(!counts || seen.size === 1, "releases of other public counts");
        const whole = total(found.map(({ share }) => share));
        const parts = found.map(({ share }) => share.over(whole));
        const mean = found[0].values.map((_, cell) =>
          sum(found.map(({ values }, j) => floor(values[cell] * parts[j].above, parts[j].below))));
        if (!counts) this.noises.set(`${T}`, { T, v: new Fraction(1n).over(whole) });
        return { T, counts, mean, blur: Math.max(...found.map(({ blur }) => blur)) };
      });
    }

    *checkMeans(name, S, { values, bits, error }, means) {
      for (const { T, counts, mean, blur } of means) {
        if (!isInside(T, S)) continue;
        const of = counts ? [] : this.measuring(T), largest = Number(most(mean.map(abs))) / 2 ** 256;
        const slack = 4 * error * Math.sqrt(Number(product(of.map((a) => a.longest)))) + blur
          + of.reduce((a, b) => a * b.blur, 1) * 2 ** -49 * largest;
        const found = yield* this.margin(S, values, T, counts);
        const agree = found.every((x, k) => Number(abs(((x << BITS) >> BigInt(bits)) - mean[k])) / 2 ** 256 <= slack);
        need(agree, `${name} is not the mean of the releases`);
        yield;
      }
    }
  }

  // ---- Folders of changes
  // An interval within the least and the largest value of its number; it holds the estimate.
  function inside({ x, low, high, least: a, most: b }) {
    if (Number.isNaN(x)) return [a, b];
    const [down, up, own] = [low, high, x].map((end) => Math.min(Math.max(end, a), b));
    return [Math.min(down, own), Math.max(up, own)];
  }

  const normal = (x, sd, lowest) =>
    ({ x, sd, low: x - QUANTILE * sd, high: x + QUANTILE * sd, least: lowest, most: Infinity });

  // An interval of x / y: all r for which x - r y is near zero (Fieller 1954).
  function quotient(x, y, vx, vxy, vy) {
    const z = QUANTILE ** 2, a = y * y - z * vy, b = x * y - z * vxy, c = x * x - z * vx;
    if (!(a > 0 && y > 0)) return [-Infinity, Infinity];
    const half = Math.sqrt(Math.max(b * b - a * c, 0)) / a;
    return [b / a - half, b / a + half];
  }

  // Both numbers, the change and its deviation, and the per cent; NaN where nothing is known.
  function changeOf(before, after) {
    const shown = [before, after].map((own) => [own.x, ...(own.isMean ? inside(own) : [own.low, own.high])]);
    const x = after.x - before.x, down = Math.hypot(after.x - after.low, before.high - before.x);
    const up = Math.hypot(after.high - after.x, before.x - before.low); // Zou & Donner 2008
    const ends = inside({ x, low: x - down, high: x + up, least: after.least - before.most, most: after.most - before.least });
    const [low, high] = quotient(after.x, before.x, after.sd ** 2, 0, before.sd ** 2).map((end) => end - 1);
    const share = before.x > 0 ? after.x / before.x - 1 : NaN, lowest = Math.min(before.least, after.least) >= 0 ? -1 : -Infinity;
    const parts = [share, ...inside({ x: share, low, high, least: lowest, most: Infinity })];
    return [...shown.flat(), x, ...ends, Math.hypot(before.sd, after.sd),
      ...parts.map((part) => (parts.every(Number.isFinite) ? 100 * part : NaN))];
  }

  // An attribute whose cells are sums, with these weights, of those of another one.
  function* weighed(own, rows) {
    const { n, N } = own, R = own.matrix ? yield* inverse([Array(n).fill(1n), ...own.matrix])
      : own.texts.map((_, i) => [ONE / N, ...own.texts.map((_, k) => ((i === k ? N - 1n : -1n) * ONE) / N ** 2n)]);
    const forms = rows.map((row) => R[0].map((_, k) => sum(row.map((x, i) => x * R[i][k])))), others = new Map();
    for (const [key, other] of own.others) others.set(key, yield* weighed(other, rows));
    const variance = forms.map((form) => sum(form.slice(1).map((x) => (x * x) >> BITS)));
    return { ...own, variance, share: forms.map(([first]) => first), others };
  }

  // Counts, or sums or means of a number, by labels joined as JSON; null if no table has them.
  function* figures(folder, kind, names, number) {
    const axes = folder.at(number === null ? names : [...names, number]);
    const above = [...folder.tables.values()].find((table) => isInside(axes, table.S));
    if (!above) return null;
    const T = above.S.filter((i) => axes.includes(i)), own = T.map((i) => folder.own[i]), found = new Map();
    let values = above.estimates;
    for (let k = above.S.length - 1; k >= 0; k--) { // sums over the other attributes
      if (!T.includes(above.S[k])) values = added(values, folder.cells(above.S.slice(0, k)), folder.own[above.S[k]].n, [Array(folder.own[above.S[k]].n).fill(1)]);
    }
    const keyOf = (cell) => {
      const labels = new Map();
      for (let k = T.length - 1; k >= 0; k--) {
        labels.set(T[k], own[k].texts[cell % own[k].n]);
        cell = Math.floor(cell / own[k].n);
      }
      return JSON.stringify(folder.at(names).map((i) => labels.get(i)));
    };
    if (number === null) {
      const deviations = yield* folder.deviations(T);
      values.forEach((x, cell) => found.set(keyOf(cell), normal(x, deviations[cell], 0)));
      return found;
    }
    const k = T.indexOf(axes.at(-1)), entry = folder.domain[axes.at(-1)], { n, texts } = own[k];
    const isClipped = entry.has("clip"), [low, high] = isClipped ? entry.get("clip").map(Number) : [0, Number(at(entry, "unit")) * 2 ** 20];
    const size = texts[1] === "weight between" ? 3 : 2, largest = isClipped ? high : Infinity;
    const count = texts.map((_, i) => (i < size ? 1n : 0n));
    const tops = texts.map((_, i) => (i === 0 ? -1n : i === size - 1 ? 1n : 0n)); // at the upper end less at the lower
    const rows = [count, tops, count.map((x, i) => x + tops[i])], lead = T.slice(0, k).reduce((a, i) => a * folder.own[i].n, 1);
    const virtual = Object.assign([...own], { [k]: { ...(yield* weighed(own[k], rows)), n: 3 } });
    const deviations = yield* folder.deviations(T, virtual), sums = added(values, lead, n, rows.map((row) => row.map(Number)));
    const rest = values.length / (lead * n), [half, middle] = [(high - low) / 2, low / 2 + high / 2];
    for (let place = 0; place < lead * rest; place++) {
      const block = Math.floor(place / rest), start = block * 3 * rest + (place % rest);
      const [y, x] = [0, 1].map((j) => sums[start + j * rest]), [vy, vx, both] = [0, 1, 2].map((j) => deviations[start + j * rest] ** 2);
      const vxy = (both - vx - vy) / 2, root = (v) => Math.sqrt(Math.max(v, 0));
      let figure;
      if (kind === "sum") {
        figure = normal(middle * y + half * x, root(middle ** 2 * vy + 2 * middle * half * vxy + half ** 2 * vx), low >= 0 ? 0 : -Infinity);
      } else {
        const ratio = y > 0 ? x / y : NaN, sd = (half * root(vx - 2 * ratio * vxy + ratio ** 2 * vy)) / y;
        const mean = Math.min(Math.max(middle + half * ratio, low), largest), [down, up] = quotient(x, y, vx, vxy, vy).map((end) => middle + half * end);
        figure = { x: mean, sd: y > 0 ? sd : NaN, low: Math.min(down, mean), high: Math.max(up, mean), least: low, most: largest, isMean: true };
      }
      found.set(keyOf(block * n * rest + (place % rest)), figure);
    }
    return found;
  }

  // Sums of the cells along an axis of n labels that follows ``lead`` cells, with the weights of each row.
  function added(values, lead, n, rows) {
    const rest = values.length / (lead * n), found = [];
    for (let block = 0; block < lead; block++) {
      for (const row of rows) {
        for (let j = 0; j < rest; j++) {
          let x = 0;
          for (let k = 0; k < n; k++) x += row[k] * values[(block * n + k) * rest + j];
          found.push(x);
        }
      }
    }
    return found;
  }

  const CHANGES = ["before", "after", "change"].flatMap((x) => [x, `${x}_low`, `${x}_high`])
    .concat("change_standard_deviation", "per_cent", "per_cent_low", "per_cent_high");

  // How far numbers of a row may be from those that are expected of it: absolute ones, and per cent.
  function slackOf(before, after) {
    const known = [before, after].filter(({ x }) => !Number.isNaN(x));
    const [noise, size] = ["sd", "x"].map((key) => known.reduce((a, own) => a + Math.abs(own[key]), 0));
    const blur = 1e-13 / Math.max(noise / (size || 1), 2 ** -25); // of ends that are almost equal
    return (place, y) => (place < 10 ? 1e-9 * noise + 1e-12 * size : 1e-9 * (1 + Math.abs(y)) + blur);
  }

  class Changes extends Folder {
    // ``record`` is null on a page, which holds both releases alone
    *open(record) {
      this.record = record;
      this.releases = new Map();
      this.fields = new Map(); // what a page says of both
      for (const when of ["before", "after"]) {
        const files = within(this.files, `releases/${when}/`);
        for (const name of files.keys()) this.files.delete(`releases/${when}/${name}`);
        if (!files.has("release.json")) {
          this.unchecked.push(`the release ${when}: its folder is not here`);
          continue;
        }
        const found = yield* sha256(files.get("release.json")), [Kind, inner] = kindOf(files);
        need(!record || at(record, when, "sha256") === found, `the release ${when} is not the one that is named`);
        const one = Object.assign(new Kind(files, this.whole), { alone: Kind === Folder });
        yield* one.open(inner);
        this.releases.set(when, one);
        this.fields.set(when, new Map([["sha256", found], ["rho", at(inner, "rho")]]));
      }
    }

    *check() {
      const { record } = this;
      if (record) {
        need(at(record, "private") === true, "a simulation, which is not private");
        const files = at(record, "tables").flatMap((entry) => [...at(entry, "files").values()]);
        this.sayFiles(yield* this.checkFiles("changes.json", [...files, "report.html", "changes.png"], ["verifier/"]));
        need(dumps(at(record, "intervals")) === dumps(LEVELS), "intervals");
      }
      for (const [when, one] of this.releases) {
        yield* one.check();
        const keys = ["neighbors", "rows_per_person", "person", "rho"];
        need(!record || keys.every((key) => same(at(record, when, key), at(one.record, key))), `what is said of the release ${when}`);
        this.include(when, one);
      }
      if (!record) return;
      const sides = ["before", "after"].map((when) => at(record, when)), whole = at(record, "rho_of_both");
      const spent = total(sides.map((side) => Fraction.of(at(side, "rho"))));
      const alike = ["neighbors", "rows_per_person", "person"].every((key) => same(at(sides[0], key), at(sides[1], key)));
      need(whole === null || (alike && fits(spent, Fraction.of(whole))), "rho_of_both");
      this.say(`rho_of_both = ${said(whole)}: ${whole === null ? "no sum" : "the sum of both"}`);
      let read = 0;
      for (const [k, entry] of at(record, "tables").entries()) read += yield* this.checkTable(entry, k);
      this.say(`${read} tables: later less earlier, per cent, and intervals from both`);
      this.unchecked.push("names, notes, findings, population_means, tables that are left out");
    }

    // Both numbers of a table by labels, from the releases; null without both.
    *sides(kind, names, number) {
      if (this.releases.size < 2 || kind === "answer") return null;
      const found = [];
      for (const one of this.releases.values()) found.push(yield* figures(one, kind, names, number));
      return found.every(Boolean) ? found : null;
    }

    *checkTable(entry, k) {
      const { record } = this;
      const [kind, names, number, name] = [at(entry, "statistic"), at(entry, "attributes"), at(entry, "number"), at(entry, "files", "changes")];
      need(["count", "answer", "sum", "mean"].includes(kind), "the statistic");
      const how = kind === "mean" ? "to first order (Zou & Donner 2008)" : "exact";
      need(at(entry, "intervals") === `intervals ${how}`, "what is said of intervals");
      need((number === null) === ["count", "answer"].includes(kind), "the number of a table");
      if (!isRead(name)) {
        this.skip(`numbers in ${[...at(entry, "files").values()].join(", ")}`);
        return 0;
      }
      need(this.files.has(name), `${name} is not there`, Unknown);
      const both = yield* this.sides(kind, names, number), heads = [...names], seen = new Set();
      if (!both) this.skip(`that labels and numbers of ${quote(at(entry, "name"))} are of the releases${kind === "mean" ? ", and what follows from their noise" : ""}`);
      for (let column of CHANGES) {
        while (heads.includes(column)) column += "_";
        heads.push(column);
      }
      for (const row of rowsIn(this.files.get(name), name, heads, k + 2, Array(2).fill(1 + at(record, "tables").length))) {
        need(row.length === heads.length, `the rows of ${name}`);
        const key = JSON.stringify(row.slice(0, names.length)), found = row.slice(names.length).map((x, k) => {
          const isEnd = kind === "mean" && k < 9 && k % 3; // it may be infinite, and is then empty in some formats
          return x === "" ? NaN : isEnd && /^-?inf$/.test(x) ? (x === "inf" ? Infinity : -Infinity) : double(x);
        });
        need(!seen.has(key), `a row of ${name} occurs twice`);
        seen.add(key);
        need(found[6] === found[3] - found[0] || Number.isNaN(found[6]), `${name}: a change is not the number after less that before`);
        need(!both || both.every((side) => side.has(key)), `the labels of ${name}`);
        const lowest = kind !== "answer" && !(found[11] < -100) ? 0 : -Infinity;
        const pair = both ? both.map((side) => side.get(key))
          : [[0, 2], [3, 5]].map(([k, end]) => normal(found[k], (found[end] - found[k]) / QUANTILE, lowest));
        const slack = slackOf(...pair);
        changeOf(...pair).forEach((y, place) => {
          const x = found[place], agree = Math.abs(x - y) <= slack(place, y) || x === y || (Number.isNaN(x) && !Number.isFinite(y));
          const isVain = !both && kind === "mean" && ![0, 3, 6].includes(place);
          need(agree || isVain, `${name}: ${CHANGES[place]} of ${key}`);
        });
        if (seen.size % 256 === 0) yield;
      }
      need(!both || both.every((side) => side.size === seen.size), `the rows of ${name}`);
      return 1;
    }
  }

  // The class of a folder, and its record.
  function kindOf(files) {
    const name = ["stream.json", "changes.json", "release.json"].find((own) => files.has(own));
    if (!name && files.has("releases/before/release.json")) return [Changes, null];
    need(name, "there is no release.json", Unknown);
    const record = json(decoded(files.get(name))), format = (record instanceof Map && record.get("format")) || null;
    const kinds = name === "release.json" ? { "gaussnoise.tables/3": Folder, "gaussnoise.combined/1": Combined }
      : { "gaussnoise.stream/2": Stream, "gaussnoise.changes/1": Changes };
    need(format !== "gaussnoise.stream-tick/1", "one tick; check its stream, the folder with stream.json", Unknown);
    need(Object.hasOwn(kinds, format), `the format ${quote(said(format))}`, Unknown);
    return [kinds[format], record];
  }

  // Check files (bytes by path), with pauses; return lines as ``gaussnoise verify`` prints them, and the folder.
  function* verify(files, whole = true) {
    let folder;
    try {
      const [Kind, record] = kindOf(files);
      folder = new Kind(new Map(files), whole);
      folder.alone = Kind === Folder;
      yield* folder.open(record);
      yield* folder.check();
    } catch (error) {
      const unknown = error instanceof Unknown;
      return { lines: [`${unknown ? "UNKNOWN: no check of such a folder" : "FAILED"}: ${error.message}`], folder: null };
    }
    const left = [...new Set(folder.unchecked), "summary.txt, method.txt, ddi.xml, metadata of tables, pictures, noise.npz, signature.json",
      "epsilon_delta, lower_bound, targets, on_outside, disclaimers", "other fields; who wrote it, and how it was drawn"];
    const lines = [...folder.checked.map((x) => `checked    ${x}`), ...left.map((x) => `unchecked  ${x}`)];
    return { lines, folder };
  }

  return { verify, sha256, said, isClose, changeOf, slackOf };
})();
if (typeof module === "object") module.exports = verifier;
