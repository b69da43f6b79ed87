// Package tensor has the vocabulary of values: element types, named
// dimensions, types, and views of raw bytes as typed slices. It computes
// nothing and imports nothing but the standard library.
package tensor
