// Package house has only tests, of the module's text: which package may import which, what is
// public, how long functions are, how wide lines, and over how many files an object is spread.
package house
