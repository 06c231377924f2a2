// Converts bytes to base64 and back, because not every runtime has methods for it.

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

export const bytesOf = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** A stream of UTF-8 as pieces of text. */
export function textReaderOf(stream: ReadableStream<Uint8Array>): ReadableStreamDefaultReader<string> {
  const decoder = new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>;
  return stream.pipeThrough(decoder).getReader();
}
