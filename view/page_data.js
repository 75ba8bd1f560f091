// The plan as columns, and what follows from them. Steps count from 0 here; people see them from 1.

const data = JSON.parse(document.getElementById("data").textContent);
// What is live at the peak, in the words of `stint show`.
const KIND_WORDS = ["inputs", "parameters", "state", "activations", "gradients", "updated in place", "workspace"];
const KINDS = ["input", "parameter", "state", "activation", "gradient", "output", "workspace"];
const PHASES = ["forward", "backward", "update"];
const WORKSPACE = 6;

const nstep = data.step.op.length;
const nbuffer = data.buffer.of.length;
const stepOp = Int32Array.from(data.step.op);
const stepLive = Float64Array.from(data.step.live);
const bufferOf = Int32Array.from(data.buffer.of);
const bufferBytes = Float64Array.from(data.buffer.bytes);
const bufferOffset = Float64Array.from(data.buffer.offset);
const bufferFirst = Int32Array.from(data.buffer.first);
const bufferLast = Int32Array.from(data.buffer.last);
const opReads = Int32Array.from(data.op.read);
const opReadsAt = new Int32Array(data.op.name.length + 1);
data.op.reads.forEach((n, i) => { opReadsAt[i + 1] = opReadsAt[i] + n; });

// The step of each op's first run; -1 for first runs themselves.
const recomputeOf = new Int32Array(nstep).fill(-1);
const runOf = new Int32Array(nstep);
const opFirstStep = new Int32Array(data.op.name.length).fill(-1);
// Ops that move a tensor to the host, or back.
const copyOps = new Set(data.copyOps);
// Distinct ops done up to and with each step.
const opsDone = new Int32Array(nstep);
for (let s = 0, done = 0, run = new Int32Array(data.op.name.length); s < nstep; s++) {
	const op = stepOp[s];
	runOf[s] = run[op]++;
	if (opFirstStep[op] < 0) {
		opFirstStep[op] = s;
		done += !copyOps.has(op);
	} else if (!copyOps.has(op))
		recomputeOf[s] = opFirstStep[op];
	opsDone[s] = done;
}

const isResident = (tensor) => data.tensor.kind[tensor] < 3;
const stepName = (s) => data.op.name[stepOp[s]];
const stepPhase = (s) => data.op.phase[stepOp[s]];
const stepCost = (s) => data.op.cost[stepOp[s]];
// The branch that it is of, where data decide whether it runs; "": it always does.
const stepWhen = (s) => (data.op.when[stepOp[s]] ? data.tensor.name[data.op.when[stepOp[s]] - 1] : "");
const guarded = data.op.when.some(Boolean);
// Why a step repeats another: the moment whose memory forced it.
const againOf = new Int32Array(nstep).fill(-1);
data.again.step.forEach((s, i) => { againOf[s] = i; });
const forcedAt = (s) => (againOf[s] < 0 ? -1 : data.again.forced[againOf[s]]);
function stepWhy(s) {
	if (againOf[s] < 0)
		return "";
	const at = forcedAt(s);
	return at < 0 ? "its results were there till now" : `frees ${human(data.again.freed[againOf[s]])} for step ${count(at + 1)}`;
}
const bufferKind = new Uint8Array(nbuffer);
const bufferAgain = new Uint8Array(nbuffer);
for (let b = 0; b < nbuffer; b++) {
	const tensor = bufferOf[b];
	bufferKind[b] = tensor < 0 ? WORKSPACE : data.tensor.kind[tensor];
	bufferAgain[b] = !(tensor >= 0 && isResident(tensor)) && recomputeOf[bufferFirst[b]] >= 0 ? 1 : 0;
}
const bufferName = (b) => (bufferOf[b] >= 0 ? data.tensor.name[bufferOf[b]] : `workspace of ${data.op.name[-1 - bufferOf[b]]}`);

// Keep-everything's live bytes where it has done as many distinct ops as the plan at each step.
const keepLive = data.keep && new Float64Array(nstep);
for (let s = 0; keepLive && s < nstep; s++)
	keepLive[s] = data.keep.live[Math.max(Math.min(opsDone[s], data.keep.live.length), 1) - 1];

let liveMost = 1;
for (const v of stepLive)
	liveMost = Math.max(liveMost, v);

function lifetimesOf(tensor) {
	const out = [];
	for (let b = 0; b < nbuffer; b++)
		if (bufferOf[b] === tensor)
			out.push(b);
	return out;
}

function opsReading(tensor) {
	const out = new Set();
	for (let op = 0; op + 1 < opReadsAt.length; op++)
		for (let i = opReadsAt[op]; i < opReadsAt[op + 1]; i++)
			if (opReads[i] === tensor)
				out.add(op);
	return out;
}

function stepsReading(tensor) {
	const ops = opsReading(tensor), out = [];
	for (let s = 0; s < nstep; s++)
		if (ops.has(stepOp[s]))
			out.push(s);
	return out;
}

// Buffers that begin at a step: what its run makes, its workspace included.
function buffersFrom(s) {
	const out = [];
	for (let b = 0; b < nbuffer; b++)
		if (bufferFirst[b] === s && !(bufferOf[b] >= 0 && isResident(bufferOf[b])))
			out.push(b);
	return out;
}

// The lifetime of a tensor that a step sees; -1 when there is none.
function lifetimeAt(tensor, s) {
	for (let b = 0; b < nbuffer; b++)
		if (bufferOf[b] === tensor && bufferFirst[b] <= s && s <= bufferLast[b])
			return b;
	return -1;
}

// As `stint show` writes them.
function human(bytes) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let u = 0, v = bytes;
	while (v >= 1024 && u < 5) {
		v /= 1024;
		u++;
	}
	return u === 0 ? `${bytes} B` : `${v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0)} ${units[u]}`;
}
const count = (n) => n.toLocaleString("en-US");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const precise = (v) => (v !== 0 && v < 1e-3 ? v.toExponential(2) : String(Number(v.toPrecision(4))));
const exactBytes = (bytes) => `${human(bytes)} (${count(bytes)} bytes)`;

// element("p", {class: "note"}, "text", child, ...): never parses anything as markup.
function element(tag, attributes, ...children) {
	const e = document.createElement(tag);
	for (const [key, value] of Object.entries(attributes || {}))
		e.setAttribute(key, value);
	for (const child of children)
		e.append(child);
	return e;
}
function swatch(kind) {
	const e = element("span", { class: "swatch" });
	e.style.background = `var(--k${kind})`;
	return e;
}
