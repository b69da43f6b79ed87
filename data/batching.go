package data

import "fmt"

// Mode says how the rows of a batch come to have one length.
type Mode int

const (
	// Padded pads every row to LoaderOptions.Length and cuts longer ones,
	// keeping EOS: one shape for all batches.
	Padded Mode = iota
	// Bucketed batches pairs of like length. Bucket lengths halve from
	// LoaderOptions.Length down to 8 while the number of pairs doubles, so all
	// batches have about the same number of positions. Longer pairs are left
	// out. A bucket with too few pairs for one batch passes them to the next.
	Bucketed
)

// modeNames are the text form of modes.
var modeNames = [...]string{Padded: "pad", Bucketed: "bucket"}

// known reports whether m is one of the modes.
func (m Mode) known() bool { return m >= 0 && int(m) < len(modeNames) }

// String gives "pad" or "bucket".
func (m Mode) String() string {
	if !m.known() {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

// MarshalText gives "pad" or "bucket".
func (m Mode) MarshalText() ([]byte, error) {
	if !m.known() {
		return nil, fmt.Errorf("batch mode %d: give pad or bucket", int(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (m *Mode) UnmarshalText(text []byte) error {
	for mode, name := range modeNames {
		if string(text) == name {
			*m = Mode(mode)
			return nil
		}
	}
	return fmt.Errorf("batch mode %.40q: give pad or bucket", text)
}

// Limits and defaults of LoaderOptions.
const (
	defaultPairs    = 16
	defaultLength   = 256
	minLength       = 2 // one token and EOS
	minBucketLength = 8
	maxPositions    = 1 << 30
)

// LoaderOptions shapes batches. The zero value gives 16 pairs of 256 positions,
// padded.
type LoaderOptions struct {
	Pairs  int    // pairs a batch at Length; 0 means 16
	Length int    // positions a row, at most; 0 means 256
	Seed   uint64 // selects the order of training pairs
	Mode   Mode
}

// withDefaults fills the zero fields.
func (o LoaderOptions) withDefaults() LoaderOptions {
	if o.Pairs == 0 {
		o.Pairs = defaultPairs
	}
	if o.Length == 0 {
		o.Length = defaultLength
	}
	return o
}

// Validate reports the first field that no loader can use.
func (o LoaderOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case !o.Mode.known():
		return fmt.Errorf("batch mode %d: give pad or bucket", int(o.Mode))
	case o.Pairs < 1:
		return fmt.Errorf("batch of %d pairs: give at least 1", o.Pairs)
	case o.Length < minLength:
		return fmt.Errorf("rows of %d positions: give at least %d", o.Length, minLength)
	case o.Length > maxPositions || o.Pairs > maxPositions/o.Length:
		return fmt.Errorf("batch of %d pairs of %d positions: give at most %d positions in all",
			o.Pairs, o.Length, maxPositions)
	}
	return nil
}

// Instead says what to do where n items do not fill one batch: take smaller ones, if there is
// any item, or what else there is.
func Instead(n int, otherwise string) string {
	if n == 0 {
		return "give " + otherwise
	}
	return fmt.Sprintf("give batches of %d or fewer, or %s", n, otherwise)
}

// Bucket is the shape of a batch.
type Bucket struct {
	Length int // positions a row
	Pairs  int // rows
}

// buckets lists the shapes of o, the shortest first. Halving bounds padding at
// half a row and keeps the shapes few: a graph is planned once a shape.
func (o LoaderOptions) buckets() []Bucket {
	shapes := []Bucket{{Length: o.Length, Pairs: o.Pairs}}
	if o.Mode == Padded {
		return shapes
	}
	for length := o.Length / 2; length >= minBucketLength; length /= 2 {
		shorter := Bucket{Length: length, Pairs: o.Pairs * o.Length / length}
		shapes = append([]Bucket{shorter}, shapes...)
	}
	return shapes
}
