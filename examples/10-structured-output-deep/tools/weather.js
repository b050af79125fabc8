#!/usr/bin/env node
const WEATHER = {
  Oslo: { now: { celsius: -3, sky: "snow" }, days: [{ day: "Tue", low: -8, high: -2 }, { day: "Wed", low: -5, high: 1 }] },
  Rome: { now: { celsius: "mild", sky: "clear" }, days: [] },
};

const { city } = JSON.parse(process.env.MCP_TOOL_ARGS_JSON);
console.log(JSON.stringify({ city, ...WEATHER[city] }));
