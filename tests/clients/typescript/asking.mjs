// What every TypeScript client says when it is asked, and the calls by which it is. Prints one JSON report.

const valueOf = (field) => {
  if (field.type === "boolean") return true;
  if (field.type === "array") return field.items.enum;
  return field.enum ? field.enum.at(-1) : field.oneOf.at(-1).const;
};

export const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} };

export const HANDLERS = {
  "elicitation/create": ({ params }) => ({
    action: "accept",
    content: Object.fromEntries(
      Object.entries(params.requestedSchema.properties).map(([name, field]) => [name, valueOf(field)]),
    ),
  }),
  "sampling/createMessage": ({ params }) => ({
    role: "assistant",
    model: "tests",
    content: { type: "text", text: `a poem about ${params.messages[0].content.text.split(" ").at(-1)}` },
  }),
  "roots/list": () => ({ roots: [{ uri: "file:///srv/one" }, { uri: "file:///srv/two" }] }),
};

export async function run(client, agreement) {
  const report = { ...agreement };
  for (const name of ["survey", "poet", "rooms", "order"]) {
    const result = await client.callTool({ name, arguments: {} });
    report[name] = result.content[0].text;
  }
  await client.close();
  console.log(JSON.stringify(report));
}
