// Where a moment is in the waterfall, in percent. Time in which no call of those in view was open takes little room, so
// that short calls far apart can still be seen. Pure functions.

const MOST_GAP = 0.012; // of the busy time, that a pause may take

/** `spans` are [begin, end] in seconds. Returns {place(at), marks: [{at, percent}], total}. */
export function busyScale(spans) {
  const pieces = joined(spans);
  if (!pieces.length) return { place: () => 0, marks: [], total: 0 };
  const busy = pieces.reduce((sum, [begin, end]) => sum + end - begin, 0) || 0.001;
  const most = busy * MOST_GAP;
  let at = 0;
  const starts = pieces.map(([begin, end], index) => {
    if (index) at += Math.min(most, begin - pieces[index - 1][1]);
    const start = at;
    at += end - begin;
    return start;
  });
  const total = at || 0.001;
  function place(moment) {
    const index = pieces.findLastIndex(([begin]) => begin <= moment);
    if (index < 0) return 0;
    const [begin, end] = pieces[index];
    const within = Math.min(moment, end) - begin;
    const after = Math.max(0, moment - end);
    return Math.min(100, (100 * (starts[index] + within + Math.min(after, most))) / total);
  }
  return { place, marks: pieces.map(([begin], index) => ({ at: begin, percent: (100 * starts[index]) / total })), total: busy };
}

function joined(spans) {
  const result = [];
  for (const [begin, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
    else result.push([begin, Math.max(end, begin)]);
  }
  return result;
}
