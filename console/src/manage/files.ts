// Downloads of files that the page generates.

/** Makes the browser save a text as a file. */
export function save(name: string, text: string, type = "application/json"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\p{L}\p{N} ._-]+/gu, "_").slice(0, 100);
  link.click();
  // By then, the browser has started to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
