// Package fit finds the largest number with which something fits, such as the
// largest batch of a model within a budget.
//
// A probe is dear: it builds a graph and plans it. So the search grows its number
// by strides, each three times the one before, until one does not fit, and then
// halves the gap; but where
// probes say how much of the limit they take, it aims at where a straight line
// through two of them reaches the limit. Needs of memory are nearly lines, and for
// one the answer takes a handful of probes however large it is. The aim is trusted
// for a few probes, each farther from the end of the gap that the one before it has
// moved: after that gaps are halved whatever the loads are. So there are never more
// probes than three for each doubling of the answer, and a few.
//
// The answer is proven by two probes: it fits, and one more does not. Whether
// something larger fits again is not looked for: that happens where what is needed
// does not grow with the number, as when tokens are shared out in groups whose size
// must divide a batch.
package fit
