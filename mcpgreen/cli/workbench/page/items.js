// What the items of the catalog are called, whatever their kind. Names of tools are unique; resources are told apart by URI.

export function idOf(definition) {
  return definition.uri ?? definition.uriTemplate ?? definition.name;
}

export function nameOf(definition) {
  return definition.name ?? definition.frontmatter?.name ?? idOf(definition);
}

export function descriptionOf(definition) {
  return definition.description ?? definition.frontmatter?.description ?? "";
}
