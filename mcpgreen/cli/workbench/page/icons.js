// Small drawings for buttons, as SVG paths on a field of 16 by 16.

const PATHS = {
  catalog: ["M2.5 3.5h11", "M2.5 8h11", "M2.5 12.5h7"],
  try: ["M4.5 2.8v10.4l8.5-5.2z"],
  calls: ["M2 4h6", "M5 8h7", "M9 12h5"],
  figures: ["M3 13V9", "M8 13V3", "M13 13V6"],
  sun: ["M8 5a3 3 0 100 6 3 3 0 000-6z", "M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1"],
  moon: ["M13 9.5A5.5 5.5 0 016.5 3a5.5 5.5 0 106.5 6.5z"],
  auto: ["M8 2a6 6 0 100 12A6 6 0 008 2z", "M8 2v12", "M8 5h4.8M8 8h6M8 11h4.8"],
  help: ["M5.8 6a2.2 2.2 0 114 1.3c-.8.9-1.8 1.1-1.8 2.3", "M8 12.4v.1"],
  down: ["M4 6l4 4 4-4"],
  close: ["M4 4l8 8M12 4l-8 8"],
  search: ["M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9z", "M10.5 10.5L14 14"],
  copy: ["M5.5 5.5h8v8h-8z", "M10.5 5.5v-3h-8v8h3"],
  again: ["M13 8a5 5 0 11-1.5-3.6", "M13.2 2v3h-3"],
  plus: ["M8 3.5v9M3.5 8h9"],
  up: ["M4 10l4-4 4 4"],
  pause: ["M5.5 3.5v9M10.5 3.5v9"],
  warning: ["M8 2.5l6 11H2z", "M8 6.5v3.2M8 11.6v.1"],
  link: ["M6.5 9.5l3-3", "M7.5 5l1.6-1.6a2.5 2.5 0 013.5 3.5L11 8.5", "M8.500 11l-1.600 1.600a2.500 2.500 0 01-3.500-3.500L5 7.500"],
  check: ["M3 8.500l3.200 3.200L13 5"],
  back: ["M10 4L6 8l4 4"],
  star: ["M3 2.500h10v11l-5-3-5 3z"],
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  for (const path of PATHS[name]) {
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "path");
    drawn.setAttribute("d", path);
    svg.append(drawn);
  }
  return svg;
}
