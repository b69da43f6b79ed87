package lda

import (
	"context"
	"slices"

	"github.com/gomem/gomem/internal/libm"
)

// lnGamma is the logarithm of the gamma function of a positive number, by Stirling's series where
// that is exact to 1e-15 of it, and by the recurrence below.
func lnGamma(x float64) float64 {
	const enough, lnRoot2Pi = 10, 0.91893853320467274178
	below := 0.0
	for x < enough {
		below += libm.Log(x)
		x++
	}
	y := 1 / float64(x*x)
	series := 1.0 / 1188
	for _, c := range []float64{-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12} {
		series = float64(series*y) + c
	}
	return float64((x-0.5)*libm.Log(x)) - x + lnRoot2Pi + series/x - below
}

// rising is the logarithms of base (base + 1) … (base + n - 1), which is lnΓ(base + n) - lnΓ(base):
// the first ones in a table.
type rising struct {
	base, at float64 // and lnΓ(base)
	table    []float64
}

func newRising(base float64) *rising {
	r := &rising{base: base, at: lnGamma(base), table: make([]float64, 1<<12)}
	for n := range r.table {
		r.table[n] = lnGamma(base+float64(n)) - r.at
	}
	return r
}

func (r *rising) of(n int) float64 {
	if n < len(r.table) {
		return r.table[n]
	}
	return lnGamma(r.base+float64(n)) - r.at
}

// LogLikelihood is log p(words, topics), in nats, the distributions of topics and words integrated
// out: equations 2 and 3 of Griffiths and Steyvers (2004).
func (m *Model) LogLikelihood(ctx context.Context) (float64, error) {
	if err := m.ready(ctx); err != nil {
		return 0, err
	}
	ofWord, ofDoc, long := newRising(m.Beta), newRising(m.Alpha),
		newRising(float64(float64(m.Topics)*m.Alpha))
	parts := make([]float64, m.Parts)
	err := m.each(func(_, i int) error {
		for _, s := range m.slices[perPart*i : perPart*(i+1)] {
			parts[i] += s.likelihood(ofWord)
		}
		return m.visit(i, func(b *block) {
			parts[i] += b.likelihood(m.samplers[i].doc, ofDoc, long)
		})
	})
	if err != nil {
		return 0, err
	}
	if err := m.share(ctx, parts); err != nil {
		return 0, err
	}
	sum, all := 0.0, newRising(m.wide)
	for _, x := range parts {
		sum += x
	}
	for _, n := range m.all {
		sum -= all.of(int(n))
	}
	return sum, nil
}

// likelihood is the words' part of the logarithm. Cells are in no order that says anything, so the
// counts are sorted: those that are in the table by how many there are of each.
func (s *slice) likelihood(r *rising) (sum float64) {
	cells, large := make([]int, len(r.table)), []uint32(nil)
	for i := range s.rows {
		for _, c := range s.rows[i].cells {
			if int(c.count) < len(cells) {
				cells[c.count]++
			} else {
				large = append(large, c.count)
			}
		}
	}
	for n, many := range cells {
		sum += float64(float64(many) * r.table[n])
	}
	slices.Sort(large)
	for _, n := range large {
		sum += r.of(int(n))
	}
	return sum
}

// likelihood is the documents' part of the logarithm. The counts are zeros, and left so.
func (b *block) likelihood(counts []int32, r, long *rising) (sum float64) {
	for d := range b.docs {
		_, topics := b.doc(d)
		for _, k := range topics {
			counts[k]++
		}
		for _, k := range topics {
			if counts[k] > 0 {
				sum += r.of(int(counts[k]))
				counts[k] = 0
			}
		}
		sum -= long.of(len(topics))
	}
	return sum
}
