// page.js - the page of `heddle web`. It asks for ps.json once a second, and shows what that says (docs/ps.schema.json). All text of the program goes into the
// page as text, never as HTML.
"use strict";

const LOOK_EVERY = 1000, SAMPLES = 60, STRIPS = 40, NODES = 150;
const $ = id => document.getElementById(id);
let view = "processes", sort = "id", latest = null, failures = 0, samples = [], history = new Map();

function element(name, attributes = {}, ...children) {
	const svg = ["svg", "g", "path", "rect", "text", "defs", "marker", "title"].includes(name);
	const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
	for (const [key, value] of Object.entries(attributes))
		if (value !== undefined && value !== false)
			e.setAttribute(key, value);
	e.append(...children);
	return e;
}

// ---- what people read ----

// As `heddle ps` writes it: the slot, and behind a dot how many processes it has had.
function idOf(pid) {
	const n = BigInt(pid), slot = n & 0xffffffn, generation = n >> 24n;
	return generation > 1n ? `#${slot}.${generation}` : `#${slot}`;
}

const titleOf = p => `${p.name || p.kind} ${idOf(p.pid)}`;

function span(ns) {
	const s = ns / 1e9;
	if (s < 1e-3)
		return `${(s * 1e6).toFixed(0)} us`;
	if (s < 1)
		return `${(s * 1e3).toFixed(1)} ms`;
	return s < 1000 ? `${s.toFixed(1)} s` : s < 1e5 ? `${s.toFixed(0)} s` : `${(s / 3600).toFixed(1)} h`;
}

function bytes(n) {
	return n < 1 << 20 ? `${n >> 10}K` : `${n >> 20}M`;
}

function doing(p, rows) {
	const parts = [];
	if (p.waits) {
		const w = p.waits, holder = w.holder && (w.holder.pid !== undefined ? rows.get(w.holder.pid) : null);
		let text = w.call + (w.object ? `, ${w.object.kind} ${w.object.address}` : "") + (w.fd !== undefined ? `, fd ${w.fd}` : "");
		if (w.holder)
			text += `, ${w.object ? "held by" : "for"} ` +
				(w.holder.thread !== undefined ? `thread ${w.holder.thread}` : holder ? titleOf(holder) : idOf(w.holder.pid));
		parts.push(text + (w.deadline ? ", with a deadline" : ""));
	}
	if (p.waiters.length > 0)
		parts.push(`${p.waiters.length} wait for what it has`);
	if (p.suspended && p.state === "waiting")
		parts.push("suspended");
	if (p.ending && p.state !== "ended")
		parts.push("is to end");
	if (p.changing)
		parts.push("changing");
	return parts.join("; ");
}

// A column: its title, the key that `heddle ps` sorts by, whether it is a number, and its text.
const COLUMNS = [
	["id", "id", false, p => idOf(p.pid)],
	["name", "name", false, p => p.name || "-"],
	["kind", null, false, p => p.kind],
	["state", "state", false, p => p.state + (p.daemon ? ", daemon" : "")],
	["priority", "priority", true, p => p.lent > p.priority ? `${p.priority} > ${p.lent}` : `${p.priority}`],
	["worker", null, true, p => p.worker >= 0 ? `${p.worker}${p.pinned ? " pinned" : ""}` : "-"],
	["for", "for", true, (p, r) => span(Math.max(0, r.now - p.since))],
	["CPU", "cpu", true, p => span(p.cpu)],
	["switches", "switches", true, p => `${p.switches}`],
	["stack", "stack", true, p => p.stack.size ? `${bytes(p.stack.used)}/${bytes(p.stack.size)}` : "-"],
	["doing", "waiters", false, (p, r, rows) => doing(p, rows)],
];

function showHead() {
	$("table").tHead.replaceChildren(element("tr", {}, ...COLUMNS.map(([title, key, number]) => {
		const th = element("th", { class: number && "number", "aria-sort": key === sort && "descending" }, title);
		if (key)
			th.addEventListener("click", () => { sort = key; showHead(); look(); });
		return th;
	})));
}

function showTable(r) {
	const wanted = $("name").value, rows = new Map(r.processes.map(p => [p.pid, p]));
	const shown = r.processes.filter(p => p.name.includes(wanted));
	$("table").tBodies[0].replaceChildren(...shown.map(p =>
		element("tr", {}, ...COLUMNS.map(([, , number, text]) => element("td", { class: number && "number" }, text(p, r, rows))))));
	$("left").textContent = r.left_out > 0 ? `and ${r.left_out} more` : "";
	$("workers").replaceChildren(...r.workers.map((w, i) => {
		const p = rows.get(w.running);
		return element("span", { class: `worker${w.running ? " busy" : ""}` },
			`worker ${i}: ${w.running ? p ? titleOf(p) : idOf(w.running) : w.asleep ? "asleep" : "idle"}` + (w.ready ? `, ${w.ready} ready` : ""));
	}));
}

// ---- waits ----

// Which processes wait for each other in a circle. A wait with a deadline ends by itself.
function findCircles(rows) {
	const next = p => p.waits && !p.waits.deadline && !p.ending && p.waits.holder ? rows.get(p.waits.holder.pid) : undefined;
	const seen = new Map(), found = new Set();
	for (const start of rows.values()) {
		let p = start;
		for (; p && !seen.has(p.pid); p = next(p))
			seen.set(p.pid, start.pid);
		if (p && seen.get(p.pid) === start.pid)
			for (let q = p; !found.has(q.pid); q = next(q))
				found.add(q.pid);
	}
	return found;
}

// Places for the nodes of one part of the graph, in pixels from its own corner: they push each other away, edges pull. Begins on a ring, always the same, so that
// a graph that stays looks the same.
function place(n, edges) {
	const at = Array.from({ length: n }, (_, i) => [Math.cos(2 * Math.PI * i / n), Math.sin(2 * Math.PI * i / n)]);
	for (let round = 0; round < 200; round++) {
		const force = at.map(() => [0, 0]), heat = 0.1 * (1 - round / 200);
		for (let i = 0; i < n; i++)
			for (let k = 0; k < i; k++) {
				const dx = at[i][0] - at[k][0], dy = at[i][1] - at[k][1], f = 1 / Math.max(dx * dx + dy * dy, 1e-4);
				force[i][0] += dx * f; force[i][1] += dy * f;
				force[k][0] -= dx * f; force[k][1] -= dy * f;
			}
		for (const { from, to } of edges) {
			const dx = at[to][0] - at[from][0], dy = at[to][1] - at[from][1], d = Math.hypot(dx, dy);
			force[from][0] += dx * d; force[from][1] += dy * d;
			force[to][0] -= dx * d; force[to][1] -= dy * d;
		}
		force.forEach(([x, y], i) => {
			const size = Math.hypot(x, y) || 1, step = Math.min(size, heat) / size;
			at[i][0] += x * step; at[i][1] += y * step;
		});
	}
	const left = Math.min(...at.map(a => a[0])), top = Math.min(...at.map(a => a[1]));
	return at.map(([x, y]) => [(x - left) * 150, (y - top) * 90]);
}

// The parts of a graph that hang together, each as a list of nodes, the largest first.
function partsOf(n, edges) {
	const part = Array.from({ length: n }, (_, i) => i), root = i => { while (part[i] !== i) i = part[i]; return i; };
	for (const { from, to } of edges)
		part[root(from)] = root(to);
	const parts = new Map();
	for (let i = 0; i < n; i++)
		parts.set(root(i), [...(parts.get(root(i)) || []), i]);
	return [...parts.values()].sort((a, b) => b.length - a.length);
}

const NODE_HEIGHT = 24, GAP = 40, WIDTH = 1200;

// Places for all nodes: part beside part, in rows. Answers them, and how large it all is.
function layOut(nodes, edges) {
	const at = new Array(nodes.length);
	let x = GAP, y = GAP, tallest = 0, width = 0;
	for (const part of partsOf(nodes.length, edges)) {
		const index = new Map(part.map((node, i) => [node, i]));
		const inside = edges.filter(e => index.has(e.from)).map(e => ({ from: index.get(e.from), to: index.get(e.to) }));
		const places = place(part.length, inside), margin = Math.max(...part.map(i => nodes[i].half));
		const wide = Math.max(...places.map(p => p[0])) + 2 * margin, tall = Math.max(...places.map(p => p[1])) + NODE_HEIGHT;
		if (x > GAP && x + wide > WIDTH) {
			x = GAP;
			y += tallest + GAP;
			tallest = 0;
		}
		part.forEach((node, i) => { at[node] = [x + margin + places[i][0], y + NODE_HEIGHT / 2 + places[i][1]]; });
		x += wide + GAP;
		width = Math.max(width, x);
		tallest = Math.max(tallest, tall);
	}
	return { at, width, height: y + tallest + GAP };
}

// An arrow from border to border of two boxes, bent, so that two that lead to and fro are two. Answers its path, and where its label goes.
function arrow(from, to, [x0, y0], [x1, y1]) {
	if (from === to)
		return [`M${x0 - 10} ${y0 - 12}c-14 -26 34 -26 20 0`, x0 + 14, y0 - 22];
	const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy), bend = Math.min(30, length / 5);
	const mx = (x0 + x1) / 2 - dy / length * bend, my = (y0 + y1) / 2 + dx / length * bend;
	const border = (node, x, y) => { // where the line from the middle of the arrow enters this box
		const cut = Math.min(node.half / Math.max(Math.abs(mx - x), 1e-6), NODE_HEIGHT / 2 / Math.max(Math.abs(my - y), 1e-6), 0.9);
		return [x + (mx - x) * cut, y + (my - y) * cut];
	};
	return [`M${border(from, x0, y0).join(" ")}Q${mx} ${my} ${border(to, x1, y1).join(" ")}`, mx, my + (dx > 0 ? 14 : -4)];
}

function showGraph(r) {
	const rows = new Map(r.processes.map(p => [p.pid, p])), circle = findCircles(rows), index = new Map(), nodes = [], edges = [];
	const node = (key, title) => {
		if (!index.has(key)) {
			index.set(key, nodes.length);
			nodes.push({ key, title, half: title.length * 3.5 + 10 });
		}
		return index.get(key);
	};
	// Circles first: they must not be left out.
	const waiting = r.processes.filter(p => p.waits && p.waits.holder).sort((a, b) => circle.has(b.pid) - circle.has(a.pid));
	for (const p of waiting) {
		if (nodes.length >= NODES)
			break;
		const h = p.waits.holder, has = rows.get(h.pid);
		const to = h.pid === undefined ? node(`thread ${h.thread}`, `thread ${h.thread}`)
			: node(h.pid, has ? titleOf(has) : `process ${idOf(h.pid)}${r.left_out ? "" : ", ended"}`);
		edges.push({ from: node(p.pid, titleOf(p)), to, dashed: p.waits.deadline, circle: circle.has(p.pid),
			label: p.waits.object ? p.waits.object.kind : p.waits.call });
	}
	if (nodes.length === 0) {
		$("graph").replaceChildren(element("p", {}, "No process waits for something that another one has."));
		return;
	}
	const { at, width, height } = layOut(nodes, edges);
	const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "which process waits for which" },
		element("defs", {}, element("marker", { id: "tip", viewBox: "0 0 10 10", refX: 10, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
			element("path", { d: "M0 0L10 5L0 10z", fill: "currentColor" }))));
	for (const e of edges) {
		const [path, x, y] = arrow(nodes[e.from], nodes[e.to], at[e.from], at[e.to]);
		svg.append(element("path", { class: `edge${e.circle ? " circle" : ""}${e.dashed ? " dashed" : ""}`, "marker-end": "url(#tip)", d: path }));
		svg.append(element("text", { class: "label", x, y, "text-anchor": "middle" }, e.label));
	}
	nodes.forEach((n, i) => svg.append(element("g", {},
		element("rect", { class: `node${circle.has(n.key) ? " circle" : ""}`, x: at[i][0] - n.half, y: at[i][1] - NODE_HEIGHT / 2, width: 2 * n.half, height: NODE_HEIGHT, rx: 4 }),
		element("text", { x: at[i][0], y: at[i][1] + 4, "text-anchor": "middle" }, n.title))));
	$("graph").replaceChildren(svg);
	if (waiting.length > edges.length)
		$("graph").append(element("p", {}, `and ${waiting.length - edges.length} waits more`));
}

async function showWhy() {
	const response = await fetch("waits.txt");
	$("why").textContent = await response.text();
}

// ---- over time ----

function remember(r) {
	const now = new Map(r.processes.map(p => [p.pid, p]));
	samples.push(r.now);
	if (samples.length > SAMPLES)
		samples.shift();
	for (const p of r.processes)
		if (!history.has(p.pid) && history.size < 5000)
			history.set(p.pid, { title: titleOf(p), states: [], changes: 0 });
	for (const [pid, h] of history) {
		const p = now.get(pid), state = p ? p.state : "";
		if (h.last !== undefined && p && h.last !== p.switches)
			h.changes++;
		h.last = p ? p.switches : undefined;
		h.states.push([samples[samples.length - 1], state]);
		if (h.states.length > SAMPLES)
			h.states.shift();
		if (h.states.every(([, s]) => s === ""))
			history.delete(pid);
	}
}

function showTimeline() {
	const busiest = [...history.values()].sort((a, b) => b.changes - a.changes).slice(0, STRIPS);
	$("strips").replaceChildren(...busiest.map(h => {
		const svg = element("svg", { viewBox: `0 0 ${SAMPLES} 2`, preserveAspectRatio: "none", width: "100%", height: 14 });
		h.states.forEach(([, state], i) => {
			if (state)
				svg.append(element("rect", { class: `s-${state}`, x: SAMPLES - h.states.length + i, y: 0, width: 0.9, height: 2 }));
		});
		return element("div", { class: "strip" }, element("span", { title: h.title }, h.title), svg);
	}));
}

// ---- histograms ----

function bars(title, values, edges, text) {
	const counts = new Array(edges.length + 1).fill(0);
	for (const v of values) {
		const i = edges.findIndex(edge => v < edge);
		counts[i < 0 ? edges.length : i]++;
	}
	const most = Math.max(1, ...counts);
	return [element("h2", {}, `${title} (${values.length})`), ...counts.map((n, i) => {
		const bar = element("b");
		bar.style.width = `${100 * n / most}%`;
		return element("div", { class: "bar" },
			element("span", {}, i < edges.length ? `below ${text(edges[i])}` : `${text(edges[i - 1])} and more`), element("span", {}, bar), element("span", {}, `${n}`));
	})];
}

const TIMES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11];

function showHistograms(r) {
	const of = state => r.processes.filter(p => p.state === state);
	$("bars").replaceChildren(
		...bars("Waiting, for how long", of("waiting").map(p => Math.max(0, r.now - p.since)), TIMES, span),
		...bars("Ready and not running, for how long", of("ready").map(p => Math.max(0, r.now - p.since)), TIMES, span),
		...bars("CPU time so far", r.processes.map(p => p.cpu), TIMES, span),
		...bars("Stack used, of its size", r.processes.filter(p => p.stack.size).map(p => p.stack.used / p.stack.size), [0.1, 0.25, 0.5, 0.8], x => `${x * 100} %`));
}

// ---- looking ----

function show() {
	if (!latest)
		return;
	const r = latest.runtimes[0];
	document.title = `${latest.target} - heddle`;
	$("target").textContent = latest.target;
	$("summary").textContent = `heddle ${r.library}: ${r.count} processes, ${r.workers.length} workers` + (r.stopping ? "; the runtime is ending" : "") +
		(latest.live ? "" : "; a core file") + (latest.runtimes.length > 1 ? `; ${latest.runtimes.length - 1} more copies of heddle, not shown` : "");
	if (view === "processes")
		showTable(r);
	else if (view === "waits")
		showGraph(r);
	else if (view === "timeline")
		showTimeline();
	else
		showHistograms(r);
}

function trouble(text) {
	$("trouble").hidden = !text;
	$("trouble").textContent = text;
}

async function look() {
	const state = $("state").value, query = new URLSearchParams({ first: $("first").value, sort });
	if (view === "processes" && state)
		query.set("state", state);
	if (view === "waits")
		query.set("sort", "waiters");
	try {
		const response = await fetch(`ps.json?${query}`), text = await response.text();
		if (!response.ok)
			throw new Error(text);
		latest = JSON.parse(text);
		failures = 0;
		trouble("");
		if (view !== "processes" || !state)
			remember(latest.runtimes[0]);
		show();
		if (view === "waits")
			await showWhy();
	} catch (error) {
		failures++;
		trouble(`${error.message.trim()}\nWhat is shown is from before that.`);
	}
}

async function forever() {
	if (!$("pause").checked && !document.hidden)
		await look();
	setTimeout(forever, LOOK_EVERY * Math.min(1 + failures, 10));
}

// The view stands behind a # in the address, so that it can be kept and sent.
function choose(name) {
	for (const button of document.querySelectorAll("button[data-view]")) {
		const chosen = button.dataset.view === name;
		button.setAttribute("aria-pressed", chosen);
		$(button.dataset.view).hidden = !chosen;
		if (chosen)
			view = name;
	}
}

const fromAddress = () => choose(["waits", "timeline", "histograms"].find(name => `#${name}` === location.hash) || "processes");
for (const button of document.querySelectorAll("button[data-view]"))
	button.addEventListener("click", () => { location.hash = button.dataset.view; });
addEventListener("hashchange", () => { fromAddress(); look(); });
for (const id of ["state", "first"])
	$(id).addEventListener("change", look);
$("name").addEventListener("input", show);
fromAddress();
showHead();
forever();
