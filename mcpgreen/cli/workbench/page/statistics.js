// Figures of calls: percentiles, rates, costs by tool. Pure functions.

import { cpuOf, durationOf, isFailure, isOpen } from "./calls-model.js";

/** The nearest-rank percentile of sorted numbers. */
export function percentile(sorted, share) {
  if (!sorted.length) return undefined;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

export function durationsOf(calls) {
  return calls.filter((call) => !isOpen(call)).map((call) => durationOf(call)).sort((a, b) => a - b);
}

export function summaryOf(calls, seconds) {
  const durations = durationsOf(calls);
  const ended = calls.filter((call) => !isOpen(call));
  return {
    calls: calls.length,
    rate: seconds ? calls.length / seconds : undefined,
    failures: ended.filter(isFailure).length,
    p50: percentile(durations, 0.5),
    p95: percentile(durations, 0.95),
    p99: percentile(durations, 0.99),
    open: calls.length - ended.length,
    hung: calls.filter((call) => call.isHung).length,
  };
}

/** A row for each name: how often, how long, how it ended, what it cost. `tokens` is a map of names to tokens of the list. */
export function byTool(calls, tokens = new Map()) {
  const groups = new Map();
  for (const call of calls) {
    if (!call.name) continue;
    const group = groups.get(call.name);
    if (group) group.push(call);
    else groups.set(call.name, [call]);
  }
  return [...groups].map(([name, group]) => {
    const cpu = group.map(cpuOf).filter((ms) => ms !== undefined);
    const peaks = group.map((call) => call.peakKb).filter((kb) => kb !== undefined);
    return {
      name,
      ...summaryOf(group),
      durations: durationsOf(group),
      cpuMs: cpu.length ? sum(cpu) : undefined,
      peakKb: peaks.length ? peaks.reduce((a, b) => Math.max(a, b)) : undefined,
      bytes: sum(group.map((call) => call.bytes || 0)),
      tokens: tokens.get(name),
    };
  });
}

/** Calls in pieces of time: [{at, ok, failed}]. */
export function buckets(calls, from, until, size) {
  const list = Array.from({ length: Math.max(1, Math.ceil((until - from) / size)) }, (_, index) => ({ at: from + index * size, ok: 0, failed: 0 }));
  for (const call of calls) {
    const bucket = list[Math.floor((call.begin - from) / size)];
    if (bucket) bucket[isFailure(call) ? "failed" : "ok"] += 1;
  }
  return list;
}

/** Steps of 1, 2 or 5 times a power of ten, for an axis with about `wanted` marks. */
export function niceStep(span, wanted) {
  const raw = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw);
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
