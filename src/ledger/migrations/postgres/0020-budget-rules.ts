/** Budgets are kept by the functions, one of which answers more than it did. Released: never edited, a change is a new number. */
export const budgetRules = `
-- The functions are made anew after this; another column of an answer is another function.
drop function if exists tributary.admit_each(text[], text[], text[], bigint[], text[], boolean[], bigint[], bigint[],
  boolean[], text[], boolean[], bigint, bigint, bigint, integer, bigint, text, integer, bigint, text[]);
`;
