/* Timelines: zoom, pan, point at events, select an interval and measure it. Positions are millionths of the whole. */

const GRAIN = 1e6;
const LEFT = 190;
const WIDE = 1000;
const SVG = "http://www.w3.org/2000/svg";

function seconds(value) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];
  const [size, unit] = units.find(([step]) => Math.abs(value) >= step * 0.9995) || [1, "s"];
  return `${Number((value / size).toPrecision(3))} ${unit}`;
}

class TimelineView {
  constructor(figure) {
    this.data = JSON.parse(figure.querySelector("script").textContent);
    for (const blocks of this.data.lanes) for (let at = 4; at < blocks.length; at += 4) blocks[at] += blocks[at - 4];
    this.svg = figure.querySelector("svg.chart");
    this.lanes = all("g.lane", this.svg);
    this.ticks = this.svg.querySelector("g.ticks");
    this.height = this.svg.viewBox.baseVal.height;
    this.from = 0;
    this.to = GRAIN;
    this.readout = make("p", { className: "readout" });
    this.readout.setAttribute("role", "status");
    this.band = document.createElementNS(SVG, "path");
    this.band.setAttribute("class", "band");
    this.svg.append(this.band);
    figure.querySelector(".picture").before(this.buttons());
    figure.querySelector(".picture").after(this.readout);
    this.svg.setAttribute("tabindex", "0");
    this.listen();
    this.say();
  }

  buttons() {
    const moves = [
      ["Zoom in", () => this.zoom(0.5)], ["Zoom out", () => this.zoom(2)], ["Earlier", () => this.pan(-0.25)],
      ["Later", () => this.pan(0.25)], ["Zoom to selection", () => this.selected()], ["Whole", () => this.show(0, GRAIN)],
    ];
    return make("div", { className: "tools" }, ...moves.map(([name, act]) => {
      const button = make("button", { type: "button" }, name);
      button.addEventListener("click", act);
      return button;
    }));
  }

  listen() {
    const keys = {
      "+": () => this.zoom(0.5), "-": () => this.zoom(2), ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
      Enter: () => this.selected(), Escape: () => this.select(null), 0: () => this.show(0, GRAIN),
    };
    this.svg.addEventListener("keydown", (event) => {
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, this.time(event));
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") return;
      this.anchor = this.time(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.anchor === undefined) this.point(event);
      else this.select([this.anchor, this.time(event)]);
    });
    this.svg.addEventListener("pointerup", (event) => {
      if (this.anchor !== undefined && Math.abs(this.time(event) - this.anchor) < (this.to - this.from) / 400) this.select(null);
      this.anchor = undefined;
    });
    this.svg.addEventListener("click", (event) => this.point(event));
  }

  time(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDE;
    const share = Math.min(1, Math.max(0, (x - LEFT) / (WIDE - LEFT)));
    return this.from + share * (this.to - this.from);
  }

  x(time) {
    return LEFT + ((time - this.from) / (this.to - this.from)) * (WIDE - LEFT);
  }

  length(time) {
    return seconds((time / GRAIN) * this.data.duration);
  }

  show(from, to) {
    const span = Math.min(GRAIN, Math.max(20, to - from));
    this.from = Math.min(GRAIN - span, Math.max(0, from));
    this.to = this.from + span;
    this.lanes.forEach((lane, index) => this.draw(lane, this.data.lanes[index]));
    this.drawTicks();
    this.select(this.selection);
  }

  zoom(factor, center = (this.from + this.to) / 2) {
    this.show(center - (center - this.from) * factor, center + (this.to - center) * factor);
  }

  pan(share) {
    const move = share * (this.to - this.from);
    this.show(this.from + move, this.to + move);
  }

  draw(lane, blocks) {
    const top = Number(lane.dataset.top);
    const height = Number(lane.dataset.height);
    const paths = all("path", lane);
    const parts = new Map(paths.map((path) => [path.dataset.role, []]));
    const last = {};
    for (let at = 0; at < blocks.length; at += 4) {
      const [start, length, , role] = blocks.slice(at, at + 4);
      if (start + length < this.from || start > this.to) continue;
      const left = Math.max(LEFT, this.x(start));
      const right = Math.max(left + 0.4, Math.min(WIDE, this.x(start + length)));
      if (right <= (last[role] || 0)) continue;
      last[role] = right;
      parts.get(this.data.roles[role]).push(`M${left.toFixed(1)} ${top}h${(right - left).toFixed(1)}v${height}h-${(right - left).toFixed(1)}z`);
    }
    for (const path of paths) path.setAttribute("d", parts.get(path.dataset.role).join(""));
  }

  drawTicks() {
    const rough = ((this.to - this.from) / GRAIN) * this.data.duration / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((nice) => nice * power).find((nice) => nice >= rough);
    const first = Math.ceil(((this.from / GRAIN) * this.data.duration) / step);
    this.ticks.replaceChildren();
    for (let index = first; ; index += 1) {
      const x = this.x((index * step * GRAIN) / this.data.duration);
      if (!(x <= WIDE)) break;
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("d", `M${x.toFixed(1)} 14V${this.height}`);
      line.setAttribute("stroke", "var(--grid)");
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", x.toFixed(1));
      text.setAttribute("y", "10");
      text.setAttribute("fill", "var(--muted)");
      text.setAttribute("text-anchor", x > 960 ? "end" : x < 200 ? "start" : "middle");
      text.textContent = seconds(index * step);
      this.ticks.append(line, text);
    }
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const y = ((event.clientY - box.top) / box.height) * this.height;
    const index = this.lanes.findIndex((lane) => y >= Number(lane.dataset.top) && y <= Number(lane.dataset.top) + Number(lane.dataset.height));
    const time = this.time(event);
    const near = (this.to - this.from) / 1000;
    const blocks = index < 0 ? [] : this.data.lanes[index];
    let found = null;
    for (let at = 0; at < blocks.length; at += 4) {
      if (blocks[at] <= time + near && blocks[at] + blocks[at + 1] >= time - near) found = blocks.slice(at, at + 4);
    }
    if (found) this.say(this.name(index, found));
  }

  name(lane, [start, length, name]) {
    const what = name < 0 ? `${-name} short events` : this.data.names[name];
    return `${this.lanes[lane].dataset.name}: ${what}, ${this.length(length)}, starts at ${this.length(start)}`;
  }

  select(ends) {
    this.selection = ends;
    if (!ends) {
      this.band.setAttribute("d", "");
      return;
    }
    const [low, high] = ends[0] < ends[1] ? ends : [ends[1], ends[0]];
    const left = Math.min(WIDE, Math.max(LEFT, this.x(low)));
    const right = Math.min(WIDE, Math.max(LEFT, this.x(high)));
    this.band.setAttribute("d", right > left ? `M${left} 14H${right}V${this.height}H${left}z` : "");
    this.say(`Selected ${this.length(high - low)}, from ${this.length(low)} to ${this.length(high)}`);
  }

  selected() {
    const ends = this.selection;
    if (!ends) return;
    this.select(null);
    this.show(Math.min(...ends), Math.max(...ends));
  }

  say(text = "Point at an event, drag to measure; + and −, arrow keys, Shift and the wheel zoom and pan.") {
    this.readout.textContent = text;
  }
}

all("figure.timeline").forEach((figure) => new TimelineView(figure));
