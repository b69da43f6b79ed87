package graph

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Fold is what becomes of the values that the workers of a job have for one name. Blocks are
// equal parts along axis 0, by the ranks of those who exchange.
type Fold uint8

// The folds.
const (
	Mean        Fold = iota // their sum divided by their number
	Sum                     // on all of them the same bits
	Gather                  // all of them, one after the other by rank
	Scatter                 // of their sum, every rank has its block
	Swap                    // block i goes to rank i, where it is the block of the rank it is from
	Copy                    // that of rank Root; the others' do not matter
	Reduce                  // their sum, which rank Root has, and all others zeros
	Permute                 // that of the rank whose To it is; zeros where nobody is
	GatherSome              // Gather, of the rows that a rank has to do with, and zeros
	ScatterSome             // Scatter, of rows that a rank has to do with
	SwapSome                // Swap, of the first rows of blocks, and zeros
)

var folds = [...]string{"mean", "sum", "gather", "scatter", "swap", "copy", "reduce",
	"permute", "gather-some", "scatter-some", "swap-some"}

// String is the fold in a word.
func (f Fold) String() string {
	if int(f) < len(folds) {
		return folds[f]
	}
	return fmt.Sprintf("fold%d", uint8(f))
}

// Adds reports whether values are added up, so that they must be f32 or f64.
func (f Fold) Adds() bool {
	return f == Mean || f == Sum || f == Scatter || f == Reduce || f == ScatterSome
}

// Some reports whether it is of some rows, of which operand 1 of what sends says which: see
// [Exchange].
func (f Fold) Some() bool { return f == GatherSome || f == ScatterSome }

// joins reports whether values come together along axis 0, and blocks whether one comes back.
func (f Fold) joins() bool  { return f == Gather || f == GatherSome }
func (f Fold) blocks() bool { return f == Scatter || f == ScatterSome }

// How is what an exchange makes of values, among whom, and by which way. The zero How is
// the mean of all workers by the way that the network prefers.
type How struct {
	Fold Fold
	// Via is "ring", "ps" and the like, one word; "" leaves it to the network. Only a mean
	// and a sum have ways.
	Via string
	// Along is the axis of the job's mesh along which the workers lie that exchange, each of
	// them with those that differ from it in that axis alone; "" is all workers.
	Along string
}

// String is "mean", with a way "mean/ring", and with an axis "mean@batch" or
// "mean/ring@batch".
func (h How) String() string {
	s := h.Fold.String()
	if h.Via != "" {
		s += "/" + h.Via
	}
	if h.Along != "" {
		s += "@" + h.Along
	}
	return s
}

// GoString is what digests are of: without an axis it is as it was before there were any.
func (h How) GoString() string {
	s := fmt.Sprintf("graph.How{Fold:%#v, Via:%q", uint8(h.Fold), h.Via)
	if h.Along != "" {
		s += fmt.Sprintf(", Along:%q", h.Along)
	}
	return s + "}"
}

// ParseHow reads what String prints.
func ParseHow(text string) (How, error) {
	first, along, axis := strings.Cut(text, "@")
	fold, via, way := strings.Cut(first, "/")
	i := slices.Index(folds[:], fold)
	h := How{Fold: Fold(max(i, 0)), Via: via, Along: along}
	if err := h.Check(); i < 0 || way && via == "" || axis && along == "" || err != nil {
		return How{}, fmt.Errorf("%.60q is no way to exchange: want %s, or a way as in mean/ring, "+
			"or an axis as in sum@batch", text, strings.Join(folds[:], ", "))
	}
	return h, nil
}

// Check reports a fold that there is none of, a way that is not one word of letters, digits
// and hyphens, and an axis that no mesh can have.
func (h How) Check() error {
	odd := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	unfit := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar ||
			strings.ContainsRune(",:=*#", r)
	}
	switch {
	case int(h.Fold) >= len(folds):
		return fmt.Errorf("there is no fold %d", h.Fold)
	case strings.ContainsFunc(h.Via, odd):
		return fmt.Errorf("%.60q is no way: want one word", h.Via)
	case h.Fold > Sum && h.Via != "":
		return fmt.Errorf("%.60q is no way to %s: there is one, which has no name", h.Via, h.Fold)
	case strings.ContainsFunc(h.Along, unfit):
		return fmt.Errorf("%.60q is no axis of a mesh: want one word", h.Along)
	}
	return nil
}
