// Package gguf reads and writes GGUF, the files of llama.cpp: values by key, and tensors. What keys
// and tensors mean is not known here.
//
// A file of version 3, little endian, is
//
//	4  "GGUF"
//	4  the version
//	8  the number of tensors
//	8  the number of keys
//	…  of each key: a text, the code of a type, and a value of it
//	…  of each tensor: a text, the name; 4 bytes, its axes; 8 for the size of each, the innermost
//	   first; 4 for the code of its elements' type; 8, its offset from where the data begins
//	…  zeros, up to a multiple of the alignment: 32, or what general.alignment says
//	…  the tensors in the same order, each followed by zeros up to the alignment
//
// A text has 8 bytes for its length before it. An array is the code of its elements' type, 8 bytes
// for how many there are, and these. Version 2 is the same. See docs/gguf.md of ggml.
//
// A header is read as a whole, and is 256 MiB at most; tensors are read in parts, when they are
// asked for. What a file says of lengths is compared with its size before memory is taken.
package gguf

import "fmt"

// Error is what is wrong with a file.
type Error struct {
	Path string // "" where it is not known
	Err  error
}

// Error names the file.
func (e *Error) Error() string {
	if e.Path == "" {
		return "gguf: " + e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap is the error without the file.
func (e *Error) Unwrap() error { return e.Err }
