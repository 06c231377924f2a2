// The two lengths of tests that play at random or store a lot of data. The short form runs with all
// other tests. `LONG=1 npm test -- client adk` runs the long form of the tests in that file.

/** The number of games or of rows in either form. */
export const games = (quick, long) => (process.env.LONG === undefined ? quick : long);
