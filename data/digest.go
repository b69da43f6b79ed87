package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// File is a file that was read: its name relative to the root directory, with slashes, its
// size in bytes, and the SHA-256 of what is in it.
type File struct {
	Name string
	Size int64
	Sum  [sha256.Size]byte
}

// FileOf is the file with a content.
func FileOf(name string, content []byte) File {
	return File{name, int64(len(content)), sha256.Sum256(content)}
}

// Hashed is a file of a name whose content is hashed while it is read.
type Hashed struct {
	name string
	in   io.Reader
	hash hash.Hash
	size int64
}

// Hash hashes what is read.
func Hash(name string, in io.Reader) *Hashed {
	return &Hashed{name: name, in: in, hash: sha256.New()}
}

// Read reads.
func (h *Hashed) Read(b []byte) (int, error) {
	n, err := h.in.Read(b)
	h.hash.Write(b[:n])
	h.size += int64(n)
	return n, err
}

// File reads what is left, and is the file.
func (h *Hashed) File() (File, error) {
	f := File{Name: h.name}
	_, err := io.Copy(io.Discard, h)
	f.Size = h.size
	h.hash.Sum(f.Sum[:0])
	return f, err
}

// Digest is of files, in their order.
type Digest struct{ contents, listing hash.Hash }

// NewDigest is of no files.
func NewDigest() *Digest { return &Digest{sha256.New(), sha256.New()} }

// Add enters a file.
func (d *Digest) Add(f File) {
	fmt.Fprintf(d.contents, "%x %s\n", f.Sum, f.Name)
	fmt.Fprintf(d.listing, "%d %s\n", f.Size, f.Name)
}

// Seal enters the digests into i.
func (d *Digest) Seal(i *Info) {
	i.SHA256 = hex.EncodeToString(d.contents.Sum(nil))
	i.Listing = hex.EncodeToString(d.listing.Sum(nil))
}

// Summarize enters the files that were read, in their order, into i: their
// number, size and digests.
func (i *Info) Summarize(files []File) {
	d := NewDigest()
	i.Files, i.Bytes = len(files), 0
	for _, f := range files {
		d.Add(f)
		i.Bytes += f.Size
	}
	d.Seal(i)
}
