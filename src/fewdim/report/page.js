"use strict";
(() => {
  const { charts } = JSON.parse(document.getElementById("data").textContent);
  const LIGHT = { ink: "#000000", rule: "#cfd6dd", line: "#0b5fa5", band: "rgba(178,98,0,0.22)" };
  const plots = [];

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["ink", "rule", "line", "band"].map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  };

  const short = (v) => (v == null ? "" : v === 0 || (Math.abs(v) >= 0.01 && Math.abs(v) < 1e6) ? String(+v.toPrecision(6)) : v.toExponential(2).replace(/\.?0+e/, "e"));

  // marks of a logarithmic axis: powers of ten, as many as have room, with 2 and 5 between them where there are few
  const marks = (_, __, low, high) => {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const stride = Math.max(1, Math.ceil((last - first) / 8)), leads = last - first < 3 ? [1, 2, 5] : [1];
    const all = [];
    for (let e = first; e <= last; e += stride) leads.forEach((lead) => all.push(lead * 10 ** e));
    return all.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
  };

  // the forecast: at each level of f, the evaluations between low and high
  const shade = (chart, fill) => (u) => {
    const rows = chart.band.rows;
    const edge = (row, end) => [u.valToPos(Math.max(row[end], 1), "x", true), u.valToPos(row.fun, "y", true)];
    const path = [...rows.map((row) => edge(row, "low")), ...rows.map((row) => edge(row, "high")).reverse()];
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    u.ctx.beginPath();
    path.forEach(([x, y], i) => (i ? u.ctx.lineTo(x, y) : u.ctx.moveTo(x, y)));
    u.ctx.closePath();
    u.ctx.fillStyle = fill;
    u.ctx.fill();
    u.ctx.restore();
  };

  const draw = (chart, palette) => {
    const place = document.getElementById(chart.id);
    const readout = document.getElementById(chart.id + "-readout");
    place.replaceChildren();
    const axis = (label, side) => ({
      label, stroke: palette.ink, grid: { stroke: palette.rule, width: 0.5 }, ticks: { stroke: palette.rule },
      values: (_, splits) => splits.map(short), size: side === "y" ? 78 : 44, font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif", ...(chart.log[side] ? { splits: marks, filter: (_, splits) => splits } : {}),
    });
    const far = chart.band ? Math.max(...chart.band.rows.map((row) => row.high)) : 0;
    const scale = (side) => ({
      time: false,
      ...(chart.log[side] ? { distr: 3 } : {}),
      ...(side === "x" && far ? { range: (_, low, high) => [low, Math.max(high, far)] } : {}),
    });
    const say = (u) => {
      const i = u.cursor.idx;
      readout.textContent = i == null ? "" : chart.labels.map((label, k) => `${label} ${chart.data[k][i]}`).join(", ");
    };
    const paths = chart.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {};
    const options = {
      width: place.clientWidth || 600, height: 300, legend: { show: false },
      scales: { x: scale("x"), y: scale("y") }, axes: [axis(chart.x, "x"), axis(chart.y, "y")],
      series: [{}, ...chart.data.slice(1).map((_, k) => ({ label: chart.labels[k + 1], stroke: palette.line, width: 2, ...paths, points: { show: chart.data[0].length < 60 && !chart.stepped } }))],
      hooks: { setCursor: [say], ...(chart.band ? { drawAxes: [shade(chart, palette.band)] } : {}) },
    };
    return new uPlot(options, chart.data, place);
  };

  const drawAll = (palette) => {
    plots.forEach((plot) => plot.destroy());
    plots.splice(0, plots.length, ...charts.map((chart) => draw(chart, palette)));
  };

  const steps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  charts.forEach((chart, n) => {
    document.getElementById(chart.id).addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      const plot = plots[n], last = chart.data[0].length - 1;
      const i = Math.min(last, Math.max(0, (plot.cursor.idx ?? -1) + steps[event.key]));
      const y = chart.data[1][i];
      plot.setCursor({ left: plot.valToPos(chart.data[0][i], "x"), top: y == null ? 0 : plot.valToPos(y, "y") });
    });
  });

  drawAll(colours());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(colours()));
  addEventListener("beforeprint", () => drawAll(LIGHT));
  addEventListener("afterprint", () => drawAll(colours()));
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => plots.forEach((plot, n) => plot.setSize({ width: document.getElementById(charts[n].id).clientWidth, height: 300 })), 100);
  });
})();
