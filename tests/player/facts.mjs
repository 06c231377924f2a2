// Which entries of a block are current, by the contract: a write makes its entry current, and
// supersedes those that it names, until they are written again or restored.

/** Writes the entry `key`. Without `supersedes` it keeps its previous list, and likewise `tags`. */
export function putFact(items, key, content, supersedes, tags) {
  const before = items.get(key);
  const fact = {
    content,
    title: null,
    supersedes: supersedes ?? before?.supersedes ?? [],
    tags: tags ?? before?.tags ?? [],
    replacedBy: null,
    isUnsure: false,
  };
  const isWritten =
    before?.content === content &&
    before.replacedBy === null &&
    String(before.supersedes) === String(fact.supersedes) &&
    String(before.tags ?? []) === String(fact.tags);
  if (!isWritten) items.set(key, fact);
  for (const other of before?.supersedes ?? [])
    if (!fact.supersedes.includes(other)) restoreReplaced(items, other, key);
  for (const other of isWritten ? [] : (supersedes ?? []))
    items.set(other, { ...items.get(other), replacedBy: key, isUnsure: false });
}

/** Returns whether there was one. */
export function removeFact(items, key) {
  const fact = items.get(key);
  if (fact === undefined) return false;
  items.delete(key);
  for (const other of fact.supersedes) restoreReplaced(items, other, key);
  return true;
}

/** If there are several replacements, those written after it count, by their clocks. */
function restoreReplaced(items, key, by) {
  const fact = items.get(key);
  if (fact === undefined || fact.replacedBy !== by) return;
  const isUnsure = [...items].some(([other, { supersedes }]) => other !== by && supersedes.includes(key));
  items.set(key, { ...fact, replacedBy: null, isUnsure });
}
