// What the items of the catalog are called, whatever their kind. Names of tools are unique; resources are told apart by URI.

export const idOf = (definition) => definition.uri ?? definition.uriTemplate ?? definition.name;
export const nameOf = (definition) => definition.name ?? definition.frontmatter?.name ?? idOf(definition);
export const descriptionOf = (definition) => definition.description ?? definition.frontmatter?.description ?? "";
