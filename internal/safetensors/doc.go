// Package safetensors reads and writes the safetensors file format: named
// tensors and a few strings in one file, without code in it.
//
// # The format
//
//	8 bytes   length of the header, little endian
//	header    a JSON object, padded with spaces to a multiple of 8 bytes
//	data      the tensors' bytes, row-major, little endian, one after another
//
// The header maps every tensor's name to its "dtype", its "shape" and its
// "data_offsets", the half-open range of its bytes within the data. The name
// "__metadata__" is reserved for an object of strings.
//
// # What is accepted
//
// A file is untrusted input. [Read] proves everything about a file that can be
// known without its data, before it allocates for any tensor: the lengths fit
// the file, the header is strict JSON without repeated or unknown keys, every
// range is as long as type and shape say, and the ranges tile the data from its
// first byte to the end of the file. So a truncated file, or one with something
// after its end, is never half read. What [Write] makes is accepted, and is
// accepted by the format's reference library too.
//
// Tensors are read one at a time when they are asked for, so a file may be
// larger than memory.
//
// # Checksums
//
// The format has none. [WriteSealed] puts some into the metadata, where other
// readers find strings that they need not understand: a CRC-32C of every
// tensor's bytes, and a SHA-256 of everything that the header says, those CRCs
// included. [Read] and [File.Get] compare them in files that have them, and of a
// tensor that several read in parts [File.CheckParts]. A CRC
// finds every flipped bit and every burst of up to 32, and misses one in four
// billion other accidents; it runs as fast as memory, where SHA-256 would take
// longer than writing to a good disk. The header decides what the bytes mean,
// and is short. Neither is meant against somebody who forges a file.
//
// What this package does not do: tensors of element types that tensors here do not
// have (F8_E4M3, C64, …) are listed but not read; files split over several
// shards are not joined. Bytes are not swapped, so on a big-endian machine values would be wrong.
package safetensors
