// What evicts an object after every write to it.

/** A `fetch` that has the object evicted before the answer to a write is given. */
export function evictingFetch(evict) {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (Number(response.headers.get("x-rows-written")) > 0) await evict(decodeURIComponent(new URL(url).pathname.split("/")[3]));
    return response;
  };
}
