// Package candidates finds the plans of one graph: it knows which candidates there are, what
// decides whether budgets are granted, and which plan is taken.
//
// A [Candidate] is a value: options and a tuning, and all that a plan of a target depends on. The
// passes decide by it, a schedule is made of what they decided, and package lower says what it
// comes to. A [Search] has the candidates of all targets of a graph; which graphs there are to
// choose from is package planner's matter.
//
// # Bounds
//
// A schedule ([program.Schedule]) is all that is decided of a step, and package lower makes a plan
// of it. Most of that is not needed to know what a plan is worth: a sketch of it says what it needs
// and takes at least, and exactly once it has addresses. Candidates are given up as soon as their
// bounds say so (first those of what is decided, then the schedule's, then the packing's), and only
// the plans that are taken are written down and verified.
//
// # The ladder
//
// What is not an option is an output. A policy knows a list of candidates to plan a target, the
// most relaxed first, and the first that fits both budgets is taken. For the thesis policy they
// differ in the prefetch, from one partition to none, and the last stages variables for every
// reader anew. Grappler tells its rule smaller and smaller budgets, down to none, since neither its
// forecast nor its remedy can be relied on. Auto knows more candidates: vanilla's, and another that
// copies nothing but feeds and fetches; longer look-aheads than the given one, of which the longest
// that fits is looked for by halving; what the thesis policy knows; candidates that keep on the
// host only what crosses from one segment of the forward pass to the next, and compute the rest of
// it again ([search.Problem.Segmented]); those that need the least, by every strategy; and
// candidates that trade the host's memory for the device's, with an eighth of the variables there,
// and so on up to all of them ([search.Housing]).
//
// Which candidates there are, and in which order, does not depend on the budgets. So what a budget
// is enough for, a larger one is.
//
// # The planner
//
// The ladder only says what is granted. Where vanilla's plan fits, auto takes that if the host is
// not known to compute beside the device ([Options.Concurrent]): then nothing is copied, and no
// price is asked. Elsewhere what is taken is the fastest, by the prices of a machine, of the
// ladder's plans, of the thesis policy's in other tunings, and of those that a search finds
// (package search): from the orders of package order whose peaks are lowest, with the variables
// where the target that takes the longest wants them, and evaluated anew for a little less than the
// budget if packing loses some of it. Graphs whose neediest operations are cut into parts (package
// graph/split) are planned too where those take much of the budget, and could be faster at all;
// package planner chooses among graphs. What the search finds has one compute stream, which is all
// that its simulation knows: of several, it is one candidate beside the ladder's plans.
//
// No plan of auto is slower, by the prices, than the thesis policy's in other tunings or grappler's
// of the same graph in the same budgets: these are rivals, of which it takes what is faster. They
// are of all strategies, with partitions of the options' size and of 5, 20 and 200 operations, and
// of every size where there are a hundred operations or fewer. What all schedules of a rival need
// and take at least is forecast before one is made. Most rivals need far less than the budget, and
// in the lowest packing steps wait for addresses that others have only just left: so theirs are
// spread over more memory, twice what is there at once or more, as far as the budgets go and as
// long as a step takes less for it. Where a rival comes as near as a 500th to what the operations
// take that every plan has on the device, nothing is searched. A rival may have a plan of a graph
// that the planner is refused, or be refused the fused graph and be faster with the model's own:
// package planner tries the rivals with these graphs too. More budget may be slower now and then,
// since the search is a heuristic; a planner.Series is not.
//
// # The minimum
//
// The minimum of a memory is the smallest budget that works with the options and the other memory's
// budget: Compile makes a plan within it, and refuses a byte less. It is the least of what the
// candidates need that decide about a refusal, which are those that a search takes if none fits.
// [Search.Minimum] is this number, for both memories and all policies. It is a property of the
// options: another partition size has another minimum, and a smaller one as a rule a smaller
// minimum.
//
// It is exact for all memories together, too: budgets of what any plan takes are not refused. Plans
// that are found by other means than the ladder's may need less than all of its candidates, such as
// of the host with part of a variable's group on the device. They are given what the next candidate
// needs, as empty bytes at their end, and take no longer for them.
//
// # The disk
//
// With a disk, candidates that do not fit the host's budget are tried again with more and more on
// the disk (package spill): first what operations compute, then half of the variables and constants
// by bytes, then all. These levels do not depend on budgets either, and at each of them everything
// that may be on the disk is there; so the minima of all three memories stay exact. The least of
// the host is the last level's: what single events touch, as packed. Where a level fits, what is
// taken has as much on the host as the budget allows, if that is faster by the machine's prices: it
// may lead to less copying, and to no other refusal.
//
// Targets that share their variables are planned together: their minimum is that of the one that
// needs the most, and they agree on where the variables are.
package candidates
