"use strict";
// The checks that notebooks/verifying.md specifies, in exact arithmetic, for the browser of a reader.
// Integers of JSON are BigInt here, its objects are Map, and its other numbers are doubles.
const verifier = (() => {
  class Fault extends Error {}
  class Unknown extends Error {}
  const FORMAT = "gaussnoise.tables/3";
  const OTHERS = { // folders that this script has no checks of
    "stream.json": "a stream", "changes.json": "changes between releases", "gaussnoise.combined/1": "a combination of releases",
  };
  const NUMBERS = ["estimate", "standard_deviation", "low", "high"];
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
    x === y || Math.abs(x - y) <= tolerance * Math.max(Math.abs(x), Math.abs(y));

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
    const from = reader(text.replace(/^\ufeff/, ""), "JSON");
    const space = /[ \t\n\r]*/y;
    const string = /"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"/y;
    const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
    const words = { true: true, false: false, null: null, NaN, Infinity, "-Infinity": -Infinity };
    function value() {
      from.take(space);
      const opened = from.take(/[[{]/y)?.[0];
      const found = opened ? inner(opened) : plain();
      from.take(space);
      return found;
    }
    function plain() {
      const text = from.take(string);
      if (text) return JSON.parse(text[0]);
      const word = from.take(/true|false|null|NaN|-?Infinity/y);
      if (word) return words[word[0]];
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
      need(from.take(/\r\n?|\n/y) || from.done, "a table cannot be read");
      yield row;
    }
  }

  function double(text) {
    need(/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text), "a number of a table cannot be read");
    return Number(text);
  }

  // Shortest digits, with an exponent below 1e-4 and from 1e16 on.
  function decimal(x) {
    if (!Number.isFinite(x)) return String(x).replace("Infinity", "inf").toLowerCase();
    const [digits, power] = x.toExponential().split("e"), e = Number(power);
    const sign = Object.is(x, -0) || x < 0 ? "-" : "", figures = digits.replace(/[-.]/g, "");
    if (e < -4 || e > 15) {
      const end = `e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
      return sign + figures[0] + (figures.length > 1 ? `.${figures.slice(1)}` : "") + end;
    }
    if (e < 0) return `${sign}0.${"0".repeat(-e - 1)}${figures}`;
    return `${sign}${figures.slice(0, e + 1).padEnd(e + 1, "0")}.${figures.slice(e + 1) || "0"}`;
  }

  // A number of significant digits, of ties the even one.
  function rounded(value, count) {
    const x = Fraction.of(value), size = new Fraction(abs(x.above), x.below);
    if (!x.above) return Object.is(value, -0) ? "-0" : "0";
    let e = abs(x.above).toString().length - x.below.toString().length;
    const ten = (k) => (k < 0 ? new Fraction(1n, 10n ** BigInt(-k)) : new Fraction(10n ** BigInt(k)));
    e -= size.atMost(ten(e)) && !ten(e).atMost(size) ? 1 : 0;
    const scaled = size.times(ten(count - 1 - e)), twice = 2n * scaled.above;
    let digits = twice / (2n * scaled.below), rest = twice - 2n * digits * scaled.below;
    digits += rest > scaled.below || (rest === scaled.below && digits & 1n) ? 1n : 0n;
    if (digits === 10n ** BigInt(count)) [digits, e] = [digits / 10n, e + 1];
    const figures = digits.toString(), sign = x.above < 0n ? "-" : "";
    const cut = (text) => text.replace(/\.?0+$/, "");
    if (e < -4 || e >= count) {
      const end = `e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
      return sign + cut(`${figures[0]}.${figures.slice(1)}`) + end;
    }
    if (e < 0) return sign + cut(`0.${"0".repeat(-e - 1)}${figures}`);
    return sign + cut(`${figures.slice(0, e + 1)}.${figures.slice(e + 1)}0`);
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

  // The labels of an attribute, its integer matrix (null for n I - 1 1'), and all that follows.
  function* attribute(entry, rows) {
    const labels = at(entry, "labels"), texts = labels.map(word);
    const n = texts.length, N = BigInt(n);
    need(n && new Set(texts).size === n, `labels of ${quote(at(entry, "name"))}`);
    const own = { labels, texts, n, N, matrix: null, divisor: N, blur: 2 };
    if (rows === undefined) {
      own.variance = Array(n).fill((ONE * (N - 1n)) / (n > 2 ? N ** 3n : 4n));
      own.share = Array(n).fill(ONE / N ** 2n);
      if (n > 2) return { ...own, square: N * N - N, least: -N };
      return { ...own, matrix: [[1n, -1n]], square: N - 1n, least: 1n - N };
    }
    const C = rows.map((row) => row.split(" ").map((x) => {
      need(/^-?\d+$/.test(x), "an integer of a matrix");
      return BigInt(x);
    }));
    need(C.length === n - 1 && C.every((row) => row.length === n), `the matrix of ${quote(at(entry, "name"))}`);
    let square = 0n, lowest;
    for (let a = 0; a < n; a++) {
      for (let b = a; b < n; b++) {
        const inner = sum(C.map((row) => row[a] * row[b]));
        if (inner > square) square = inner;
        if (lowest === undefined || inner < lowest) lowest = inner;
      }
      yield;
    }
    const R = yield* inverse([Array(n).fill(1n), ...C]);
    const length = (matrix) => most(matrix.map((row) => sum(row.map(abs))));
    return {
      ...own, matrix: C, divisor: 1n, square, least: lowest, solved: n > 1,
      variance: R.map((row) => sum(row.slice(1).map((x) => x * x)) >> BITS),
      share: R.map((row) => (row[0] * row[0]) >> BITS),
      blur: C.length ? new Fraction(length(R) * length(C), ONE).number : 0,
    };
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

  // The sum over T of weight_T times the variances of T's cells and the shares of the others.
  function* variances(own, weights) {
    if (!own.length) return [weights.get("") ?? 0n];
    const [first, ...others] = own, made = new Map(), found = [];
    for (let k = 0; k < first.n; k++) {
      const [e, v] = [first.variance[k], first.share[k]], name = `${e} ${v}`;
      if (!made.has(name)) {
        const mixed = new Map();
        for (const [T, weight] of weights) { // a text of a 0 or 1 for each attribute
          const part = (weight * (T[0] === "1" ? e : v)) >> BITS;
          mixed.set(T.slice(1), (mixed.get(T.slice(1)) ?? 0n) + part);
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
    let cells = words(given.get("categories") ?? bins);
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

  const isInside = (T, S) => T.every((i) => S.includes(i));
  const isTrue = (x) => x instanceof Map ? x.size > 0 : Array.isArray(x) ? x.length > 0 : Boolean(x);

  // ---- a folder

  class Folder {
    // ``files`` are bytes by path; some may be missing unless ``whole``
    constructor(files, whole) {
      Object.assign(this, { files, whole, checked: [], unchecked: [], tables: new Map(), known: new Map() });
    }

    say(line) {
      this.checked.push(line);
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

    *open() {
      for (const [name, what] of Object.entries(OTHERS)) need(!this.files.has(name), what, Unknown);
      need(this.files.has("release.json"), "there is no release.json", Unknown);
      const record = (this.record = json(decoded(this.files.get("release.json"))));
      need(record instanceof Map && record.get("format") === FORMAT,
        OTHERS[record.get?.("format")] ?? `not of the format ${FORMAT}`, Unknown);
      need(at(record, "private") === true, "a simulation, which is not private");
      need(Array.isArray(at(record, "marginals")), "a list of tables in Parquet", Unknown);
      [this.plan, this.noise] = [at(record, "plan"), at(record, "noise")];
      this.entries = at(record, "marginals");
      const domain = at(record, "domain"), matrices = this.noise.get("contrasts") ?? new Map();
      this.names = domain.map((entry) => at(entry, "name"));
      this.positions = new Map(this.names.map((name, i) => [name, i]));
      need(this.positions.size === domain.length, "names");
      need([...matrices.keys()].every((name) => this.positions.has(name)), "names");
      this.own = [];
      for (const entry of domain) this.own.push(yield* attribute(entry, matrices.get(at(entry, "name"))));
      this.sets = this.entries.map((entry) => this.inOrder(at(entry, "attributes")));
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
      this.exchanged = at(record, "neighbors") === "replace";
      this.moving = at(record, "neighbors") === "add-remove" || at(record, "person") !== null;
    }

    cells(S) {
      return S.reduce((n, i) => n * this.own[i].n, 1);
    }

    *checkFiles() {
      const listed = at(this.record, "files"), names = [...this.files.keys()].filter((x) => !["release.json", "signature.json"].includes(x));
      const missing = [...listed.keys()].filter((name) => !this.files.has(name));
      const odd = [...(this.whole ? missing : []), ...names.filter((name) => !listed.has(name))];
      need(!odd.length, `missing or added: ${odd.sort().join(", ")}`);
      const own = new Set(["summary.txt", "method.txt", "ddi.xml", ...this.entries.map((e) => at(e, "file"))]);
      for (const name of [...own]) if (name.endsWith(".csv")) own.add(`${name}-metadata.json`);
      const more = [...listed.keys()].filter((name) => !own.has(name) && !["release.png", "noise.npz", "verifier.py"].includes(name));
      const others = [...own].filter((name) => !listed.has(name));
      others.push(...more.filter((name) => !name.startsWith("answers/")));
      need(!others.length, `not of a release: ${others.join(", ")}`);
      for (const name of names) {
        const found = yield* sha256(this.files.get(name));
        need(found === listed.get(name), `${quote(name)} has another sha256 than the record states`);
      }
      if (this.files.has("summary.txt")) {
        need(!decoded(this.files.get("summary.txt")).includes("NOT PRIVATE"), "a simulation");
      }
      const only = this.whole ? ", and there is no other file" : ", of those that this page holds";
      this.say(`${names.length} files: each has the stated sha256${only}`);
      if (missing.length) this.unchecked.push(`files that this page does not hold: ${missing.join(", ")}`);
      this.unchecked.push(...names.filter((name) => name.startsWith("answers/") || name === "verifier.py"));
    }

    checkDomain() {
      const schema = toml(at(this.plan, "schema")).get("attributes");
      need(schema instanceof Map && same([...schema.keys()], this.names), "the schema has other attributes than the domain");
      for (const entry of at(this.record, "domain")) {
        const name = at(entry, "name"), own = new Map([...entry].map(([key, x]) =>
          [key, ["labels", "groups"].includes(key) ? words(x) : x]));
        need(same(own, entryOf(name, schema.get(name))), `${quote(name)} is not that of the schema`);
      }
    }

    checkUnit() {
      const { record, plan } = this, k = at(record, "rows_per_person"), relation = at(record, "neighbors");
      const person = at(plan, "person");
      const agree = ["neighbors", "rows_per_person", "person", "per_person"].every((key) =>
        same(record.get(key) ?? null, plan.get(key) ?? null));
      need(agree && typeof k === "bigint" && k > 0n && ["add-remove", "replace"].includes(relation), "unit");
      const noun = isTrue(plan.get("per_person") ?? null) ? "record" : "row";
      const rows = `${k} ${noun}${k === 1n ? " is" : "s are"}`;
      const unit = person !== null ? `one person (column ${quote(person)}), of whom at most ${rows} counted`
        : k === 1n ? "one row" : `one person of at most ${k} rows`;
      need(at(record, "privacy_unit") === unit, `privacy_unit is not ${quote(unit)}`);
      need(at(record, "neighbors_meaning").startsWith(`${relation} (`), "neighbors_meaning");
      const weight = this.noise.get("unit")?.get("weight") ?? null;
      need(same(this.weight, weight) && this.most.above > 0n, "weight");
      need(!this.exchanged || !this.weight, "weights where rows are exchanged");
      return `${relation}, ${unit}`;
    }

    *checkRequest() {
      const { record, plan, names } = this;
      this.checkDomain();
      const unit = this.checkUnit(), terms = record.get("workload") ?? this.entries;
      const asked = terms.map((term) => this.at(term.get("bases")?.keys() ?? at(term, "attributes")));
      const sorted = (S) => `${[...S].sort((a, b) => a - b)}`;
      const tables = new Set(this.sets.map(sorted));
      need(tables.size === this.sets.length, "a table is listed twice");
      need(same([...new Set(asked.map(sorted))].sort(), [...tables].sort()), "the workload asks for other tables");
      let given = at(plan, "workload");
      if (typeof given === "bigint") given = [...subsets(names, Number(given))];
      given = given.map((term) => (term instanceof Map ? term : new Map(term.map((name) => [name, null]))));
      need(same(given.map((term) => sorted(this.at(term.keys()))), asked.map(sorted)), "the plan's workload");
      const weights = terms.map((term) => at(term, "weight"));
      need(same(at(plan, "weights"), isTrue(at(plan, "targets")) ? null : weights), "weights of the plan");
      const usual = new Map(at(record, "domain").map((entry) => [at(entry, "name"), entry.get("base") ?? "identity"]));
      const bases = given.map((term) => new Map([...term].map(([name, x]) => [name, x ?? usual.get(name)])));
      need(bases.every((own, k) => same(own, terms[k].get("bases") ?? new Map([...own].map(([name]) => [name, "identity"])))),
        "the bases");
      const request = [];
      if (this.weight) request.push(["weight", [at(this.weight, "column"), nineDigits(at(this.weight, "most"))]]);
      for (const key of ["person", "per_person", "public", "ranges", "title", "source"]) {
        if ((plan.get(key) ?? null) !== null) request.push([key, plan.get(key)]);
      }
      request.push(["schema", at(plan, "schema")], ["marginals", asked.map((S) => S.map(BigInt))]);
      request.push(["weights", weights.map(nineDigits)], ["p", at(plan, "p")], ["neighbors", at(record, "neighbors")]);
      request.push(["rho", nineDigits(at(record, "privacy", "rho"))]);
      if (at(plan, "privacy").has("scale")) request.push(["scale", at(plan, "privacy", "scale")]);
      request.push(["rows_per_person", at(record, "rows_per_person")]);
      let wholes = [request];
      if (record.has("workload")) {
        const first = ["bases", terms.map((term) => [...at(term, "bases").values()])];
        wholes = [[first, ...request], [first, ["catch-alls", "in no query that takes cells in order"], ...request]];
      }
      const digests = [];
      for (const whole of wholes) {
        digests.push(yield* sha256(new TextEncoder().encode(dumps(new Map(whole)))));
      }
      need(digests.includes(at(record, "request_sha256")), "request_sha256 is not that of the request");
      this.say(`${unit}: all that the record states twice agrees`);
    }

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

    // The scale of each number without an upper end, over the end of its last cell.
    grown() {
      const used = [...new Set(this.sets.flat())].filter((i) => at(this.record, "domain")[i].has("unit"));
      const scales = at(this.plan, "privacy").get("scale") ?? new Map();
      return new Map(used.map((i) => {
        const entry = at(this.record, "domain")[i], name = at(entry, "name");
        need(scales.has(name), "a number that no budget grows with");
        return [i, written(scales.get(name)).over(written(at(entry, "unit"))).over(1n << 20n)];
      }));
    }

    // The least m with a + sum of b u^2 at most m (1 + sum of (u/t)^2), for all numbers u of a row:
    // both sides are sums of the same squares, so that m is the largest ratio of coefficients.
    paid(scales) {
      const alone = !this.exchanged && at(this.record, "rows_per_person") === 1n && !this.weight;
      need(alone && at(this.record, "person") === null, "the budget");
      const apart = [...scales.keys()].every((i) => {
        const C = this.own[i].matrix;
        return C?.length === 1 && C[0].length === 2 && C[0][0] === 0n && C[0][1] === 1n;
      });
      need(apart && this.unit === 1n << 20n, "sums are not measured apart from counts");
      const sums = new Map();
      for (const { T, s } of this.multipliers.values()) {
        const [number = null, ...more] = T.filter((i) => scales.has(i));
        need(!more.length, "a product of numbers without an upper end");
        const length = s * s * product(T.map((i) => this.own[i].square));
        sums.set(number, (sums.get(number) ?? 0n) + length);
      }
      let most = new Fraction(0n);
      for (const [i, b] of sums) {
        const own = i === null ? new Fraction(b) : scales.get(i).times(scales.get(i)).times(b);
        if (!own.atMost(most)) most = own;
      }
      this.say("budgets that grow with numbers pay for every row, of any numbers");
      return most;
    }

    // The largest squared change of the integers between neighbours, in units.
    *moved() {
      const scales = this.grown();
      if (scales.size) return this.paid(scales);
      const parts = [...this.multipliers.values()].map(({ T, s }) => [T, s * s]);
      const lengths = (T, skip) => product(T.filter(skip).map((i) => this.own[i].square));
      const whole = sum(parts.map(([T, x]) => x * lengths(T, () => true)));
      if (!this.exchanged) return whole;
      const free = [...new Set(parts.flatMap(([T]) => T))].filter((i) => !this.public.includes(i));
      need(parts.length * 2 ** free.length < MOST_STEPS, "too many attributes", Unknown);
      // public attributes are the same in both rows
      const left = parts.map(([T, x]) => [T.filter((i) => free.includes(i)), x * lengths(T, (i) => !free.includes(i))]);
      const change = 2n * (whole - (yield* this.farthest(left, free)));
      return this.moving && whole > change ? whole : change;
    }

    *checkPrivacy() {
      const { record, plan, noise } = this, wanted = new Set();
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
      const inParts = this.weight || this.sets.some((S) => S.some((i) => at(record, "domain")[i].has("clip") || at(record, "domain")[i].has("unit")));
      const exponent = this.unit.toString(2).length - 1;
      need(this.unit === 1n << BigInt(exponent) && (inParts ? exponent >= 10 && exponent <= 20 : exponent === 0), "units");
      const stated = at(noise, "integer_sensitivity_squared");
      const change = Fraction.of(yield* this.moved()).times(this.unit ** 2n);
      const exact = (change.above + change.below - 1n) / change.below;
      need(typeof stated === "bigint" && stated === exact, `the squared sensitivity is ${exact}`);
      this.say(`squared sensitivity ${stated}: of integer matrices, over all pairs of rows`);
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
        need(same(new Map(given), stated), "the budgets of rows");
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

    *checkTables() {
      const levels = new Map([["columns", NUMBERS.slice(2)], ["level", 0.95], ["simultaneous", false]]);
      need(same(at(this.record, "intervals"), levels), "intervals");
      const others = new Set();
      for (let k = 0; k < this.sets.length; k++) {
        const name = at(this.entries[k], "file"), S = this.sets[k];
        need(at(this.entries[k], "cells") === BigInt(this.cells(S)), `the number of cells of ${name}`);
        const other = !name.endsWith(".csv") || name.endsWith("+sdmx.csv");
        if (other && this.cells(S) > MOST_CELLS) {
          others.add(`numbers in ${name}, and what the record says of them`);
          continue;
        }
        const first = name.endsWith(".xlsx") ? (BigInt(k + 1) << 20n) + 1n : 0n; // a sheet for each table, below its heads
        const packed = name.endsWith(".parquet") && this.record.has("executors");
        need(packed || at(this.entries[k], "first_row") === first, `the first row of ${name}`);
        const given = at(this.entries[k], "standard_deviation"), stated = Array.isArray(given) ? given : [given, given];
        if (other) {
          others.add(`numbers in ${name}`);
          const own = yield* this.deviations(S), ends = [least(own), most(own)], close = this.tolerance(S);
          need(stated.length === 2 && ends.every((sd, i) => isClose(stated[i], sd, close)), `the deviation that is stated of ${name}`);
        } else {
          need(this.files.has(name), `${name} is not there`, Unknown);
          yield* this.checkTable(name, stated, S);
        }
      }
      const fine = [...this.known.values()].filter(({ slack }) => slack < 0.25).length;
      this.say("standard deviations and intervals in CSV: of sigma, multipliers and matrices");
      this.say(`${this.known.size} measurements, ${fine} as integers: the same from all tables`);
      this.unchecked.push(...others);
      if (fine < this.known.size) {
        this.unchecked.push(`${this.known.size - fine} measurements: doubles do not resolve integers`);
      }
    }

    // Standard deviations of the cells of S, which is inside a table.
    *deviations(S) {
      const inside = [...this.multipliers.values()].filter(({ T }) => isInside(T, S));
      const finest = inside.length ? least(inside.map(({ s }) => s)) : 1n;
      const shares = new Map(inside.map(({ T, s }) =>
        [S.map((i) => (T.includes(i) ? "1" : "0")).join(""), (ONE * finest ** 2n) / s ** 2n]));
      const squares = yield* variances(S.map((i) => this.own[i]), shares);
      need(!inside.length || least(squares) >> 64n, "variances are too small to be checked");
      const scale = Fraction.of(at(this.noise, "sigma")).times(this.most).over(this.unit * finest).number;
      return squares.map((x) => Math.sqrt(Number(x) / 2 ** 256) * scale);
    }

    // How closely their deviations are known: of inverted matrices, less.
    tolerance(S) {
      return S.some((i) => this.own[i].solved) ? 1e-9 : 1e-14;
    }

    *checkTable(path, stated, S) {
      const own = S.map((i) => this.own[i]), size = this.cells(S), columns = NUMBERS.map(() => []);
      const rows = csv(decoded(this.files.get(path))), name = path.split("/").at(-1);
      const heads = [...S.map((i) => this.names[i]), ...NUMBERS];
      need(same(rows.next().value ?? [], heads), `the columns of ${name}`);
      let count = 0;
      for (const row of rows) {
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
      const expected = yield* this.deviations(S), tolerance = this.tolerance(S);
      need(deviations.every((sd, k) => isClose(sd, expected[k], tolerance)),
        `a standard deviation in ${name} is not that of its noise`);
      need(same(stated, [least(deviations), most(deviations)]), `the deviation that is stated of ${name}`);
      this.tables.set(`${S}`, { S, estimates, deviations, lows, highs });
      yield* this.checkIntegers(name, S, estimates, deviations);
    }

    // Compare the integers that got noise, and exact counts, with those of other tables.
    *checkIntegers(name, S, estimates, deviations) {
      const exact = estimates.map(parts), bits = Math.max(...exact.map(([, e]) => -e).filter((e) => e > 0), 0);
      const values = exact.map(([m, e]) => m << BigInt(bits + e));
      // noise may have cancelled numbers larger than these
      const size = estimates.reduce((a, x) => Math.max(a, Math.abs(x)), 0) + 8 * most(deviations);
      const error = size * Math.sqrt(estimates.length) * 2 ** (S.length / 2 - 51);
      const wanted = [...this.multipliers.values()].filter(({ T }) => isInside(T, S))
        .map(({ T, s }) => ({ T, factor: new Fraction(s * this.unit).over(this.most), counts: false }));
      if (!this.moving) {
        const known = S.filter((i) => this.public.includes(i));
        for (const T of subsets(known)) wanted.push({ T, factor: new Fraction(1n), counts: true });
      }
      for (const { T, factor, counts } of wanted) {
        const measured = counts ? [] : T.map((i) => this.own[i]);
        const scale = factor.times(product(measured.map((a) => a.divisor)));
        let slack = error * Math.sqrt(Number(product(measured.map((a) => a.square)))) * scale.number;
        const key = `${counts ? "counts" : ""} ${T}`;
        if (slack > 0.25 && this.sets.filter((R) => isInside(T, R)).length === 1) {
          this.known.set(key, { whole: [], slack });
          continue;
        }
        let found = values;
        for (let k = S.length - 1; k >= 0; k--) {
          if (counts && T.includes(S[k])) continue;
          found = yield* along(found, this.cells(S.slice(0, k)), this.own[S[k]], T.includes(S[k]));
        }
        const below = scale.below << BigInt(bits), { above } = scale;
        const whole = found.map((x) => floor(2n * x * above + below, 2n * below)); // the nearest
        slack += 4 * measured.reduce((a, b) => a * b.blur, 1) * 2 ** -53 * Number(most(whole.map(abs)));
        need(!counts || whole.every((x) => x >= 0n), `${name}: a public count is negative`);
        if (slack < 0.25) {
          const limit = Fraction.of(slack).times(below);
          need(found.every((x, k) => abs(x * above - whole[k] * below) <= limit.above / limit.below + 1n),
            `${name} is not made of integers as stated`);
        }
        if (!this.known.has(key)) this.known.set(key, { whole, slack });
        const first = this.known.get(key);
        const apart = Math.max(slack, first.slack) < 0.25 ? 0n : BigInt(Math.ceil(slack + first.slack)) + 1n;
        need(whole.every((x, k) => abs(x - first.whole[k]) <= apart), `${name} disagrees with another table on a margin`);
        yield;
      }
    }

    *checkOptimality() {
      const stated = at(this.record, "optimality"), number = (key) => Fraction.of(at(stated, key)).number;
      const upper = number("gamma"), lower = number("gamma_lower"), gap = number("certified_gap");
      need(0 <= lower && lower <= upper && gap === (lower ? upper / lower - 1 : 0), "gamma");
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

  // Check files (bytes by path), with pauses; return lines as ``gaussnoise verify`` prints them, and the folder.
  function* verify(files, whole = true) {
    const folder = new Folder(files, whole);
    try {
      yield* folder.open();
      yield* folder.checkFiles();
      yield* folder.checkRequest();
      yield* folder.checkPrivacy();
      yield* folder.checkTables();
      yield* folder.checkOptimality();
    } catch (error) {
      const unknown = error instanceof Unknown;
      return { lines: [`${unknown ? "UNKNOWN: no check of such a folder" : "FAILED"}: ${error.message}`], folder: null };
    }
    const left = [...folder.unchecked, "epsilon_delta, lower_bound, targets, on_outside, texts, pictures",
      "noise.npz, signature.json, metadata", "other fields; who wrote it, and how it was drawn"];
    const lines = [...folder.checked.map((x) => `checked    ${x}`), ...left.map((x) => `unchecked  ${x}`)];
    return { lines, folder };
  }

  return { verify, sha256, said, isClose };
})();
if (typeof module === "object") module.exports = verifier;
