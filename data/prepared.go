package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Prepared is what was read with the sub-words that were learnt from it, so that one process
// of several on a machine can read and learn for all.
type Prepared struct {
	For       string   // what was asked for, by which a process knows that it is meant
	Corpus    *Corpus  // pairs,
	Running   *Running // or running text
	Tokenizer *Tokenizer
}

// preparedHeader names the format that MarshalBinary writes.
const preparedHeader = "gomem-prepared 2\n"

// MarshalBinary writes a header, strings with their lengths, and the SHA-256 of all that.
func (p *Prepared) MarshalBinary() ([]byte, error) {
	out := parcel(preparedHeader)
	var info Info
	if p.Corpus != nil {
		info = p.Corpus.Info
	} else {
		info = p.Running.Info
	}
	about, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	vocabulary, err := p.Tokenizer.MarshalText()
	if err != nil {
		return nil, err
	}
	out.string(p.For)
	out.string(string(about))
	out.string(string(vocabulary))
	if p.Corpus != nil {
		out.string("pairs")
		out.pairs(p.Corpus.Train)
		out.pairs(p.Corpus.HeldOut)
	} else {
		kind := "sections"
		if p.Running.packed {
			kind = "documents"
		}
		out.string(kind)
		out.sections(p.Running.Train)
		out.sections(p.Running.HeldOut)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// UnmarshalBinary reads what MarshalBinary wrote. What is something else, or has another
// SHA-256, gives an *[Error].
func (p *Prepared) UnmarshalBinary(b []byte) error {
	read, err := unpacked(b)
	if err != nil {
		return &Error{Spec: "of another process", Err: err}
	}
	*p = *read
	return nil
}

func unpacked(b []byte) (*Prepared, error) {
	body := b[:max(0, len(b)-sha256.Size)]
	if !bytes.HasPrefix(body, []byte(preparedHeader)) {
		return nil, fmt.Errorf("%.20q where %q is due: start all processes with one version", b,
			preparedHeader)
	}
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil, errors.New("the SHA-256 is another: it came damaged")
	}
	in := unpacker{rest: string(body[len(preparedHeader):])}
	p := &Prepared{For: in.string(), Tokenizer: &Tokenizer{}}
	var info Info
	if err := json.Unmarshal([]byte(in.string()), &info); err != nil {
		return nil, err
	}
	if err := p.Tokenizer.UnmarshalText([]byte(in.string())); err != nil {
		return nil, err
	}
	switch kind := in.string(); kind {
	case "pairs":
		p.Corpus = &Corpus{Info: info, Train: in.pairs(), HeldOut: in.pairs()}
	case "sections", "documents":
		p.Running = &Running{Info: info, Train: in.sections(), HeldOut: in.sections(),
			packed: kind == "documents"}
	default:
		return nil, fmt.Errorf("%.20q where pairs, sections or documents are due", kind)
	}
	if in.short || in.rest != "" {
		return nil, errors.New("it ends too early or too late")
	}
	return p, nil
}

// parcel is strings with their lengths, one behind another.
type parcel []byte

func (p *parcel) number(n int) { *p = binary.AppendUvarint(*p, uint64(n)) }

func (p *parcel) string(s string) {
	p.number(len(s))
	*p = append(*p, s...)
}

func (p *parcel) pairs(pairs []Pair) {
	p.number(len(pairs))
	for _, x := range pairs {
		p.string(x.Source)
		p.string(x.Target)
	}
}

func (p *parcel) sections(sections []Section) {
	p.number(len(sections))
	for _, x := range sections {
		p.string(x.Text)
		p.number(x.Given)
		last := 0
		if x.Last {
			last = 1
		}
		p.number(last)
	}
}

// unpacker reads a parcel. What it gives shares the parcel's memory.
type unpacker struct {
	rest  string
	short bool // something was not there
}

// number reads a number from 0 to most.
func (u *unpacker) number(most int) int {
	n, size := binary.Uvarint([]byte(u.rest[:min(len(u.rest), binary.MaxVarintLen64)]))
	if size <= 0 || n > uint64(max(0, most)) {
		u.short, u.rest = true, ""
		return 0
	}
	u.rest = u.rest[size:]
	return int(n)
}

func (u *unpacker) string() string {
	n := u.number(len(u.rest))
	if n > len(u.rest) {
		u.short, u.rest = true, ""
		return ""
	}
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

// pairs reads as many as there are; each takes two bytes at least.
func (u *unpacker) pairs() (pairs []Pair) {
	for range u.number(len(u.rest) / 2) {
		pairs = append(pairs, Pair{Source: u.string(), Target: u.string()})
	}
	return pairs
}

// sections reads as many as there are; each takes three bytes at least.
func (u *unpacker) sections() (sections []Section) {
	for range u.number(len(u.rest) / 3) {
		text := u.string()
		sections = append(sections, Section{Text: text, Given: u.number(len(text)),
			Last: u.number(1) == 1})
	}
	return sections
}
