// Bounds the time of a hook, like that of a call to another Worker.

/** The result of `work`, or an error after this many milliseconds. The timer is cleared when the work ends. */
export async function within<Answer>(
  ms: number,
  what: string,
  work: () => Answer | Promise<Answer>,
): Promise<Awaited<Answer>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`\`${what}\` took longer than ${ms / 1000} seconds`)), ms);
  });
  try {
    return await Promise.race([(async () => await work())(), late]);
  } finally {
    clearTimeout(timer);
  }
}
