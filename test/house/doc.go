// Package house has only tests, of the module's text: which package may import which, what is
// public, how long functions are and how wide lines.
package house
