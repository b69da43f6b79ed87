// Package planner turns a graph into a plan: it makes the graphs that there are to choose from,
// looks for the fastest plans of each that fit, and takes the fastest of all.
//
// # The way of a plan
//
//	graph → variants → candidates → schedule → sketch → packed → chosen → plan
//
// A variant is a graph with the results of the model's: as it is, fused, cut into parts, in another
// precision; this package makes them, and [Plan] chooses among them. A candidate is one way to plan
// a variant, by policy, strategy and tuning: package candidates knows which there are, which of
// them decide about a refusal, and what else is tried for being fast. What every schedule of a
// candidate needs and takes at least is said by package outlook, and its schedule is lowered by
// package lower: to a sketch, which has exact bounds, then to addresses, and at last, if it is
// chosen, to a plan, which is verified. Where none fits, package explain says what is short and
// what would help. The arrows between these packages point one way:
//
//	lower ← outlook ← candidates ← explain ← planner
//
// # The largest that fits
//
// Whether a graph fits is known by the candidates that decide about a refusal: one that does is
// soon found, but to refuse means to try them all, for each graph that there is to choose
// from. A [Scout] weighs graphs that are alike but for a number, such as a model's depth. It
// leaves out what by the line through two other numbers' needs will not fit, which makes a
// refusal a guess; [Fits] is certain.
package planner
