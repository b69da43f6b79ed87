package attention

import (
	"math"
	"slices"
)

// mask says which keys a query sees.
type mask struct {
	// Causal: a query sees no key after its own place. Query i of element b is at place
	// Place + i, and Places[b] or Places[0] more, if there are any.
	Causal bool
	Place  int
	Places []int32
	// Window, if it is not zero, is how many keys a query sees at most, its own and those
	// before, beside the first Sinks keys.
	Window, Sinks int
	// Padding has a number for every key of each element: those that are 0 are not seen.
	Padding []int32
	// Documents has a number for every key: a query sees those that have the number of the key
	// at its own place.
	Documents []int32
}

// sight is what of a tile is seen.
type sight int

const (
	none sight = iota
	some
	all
)

// place is that of a query.
func (m *mask) place(b, q int) int {
	switch {
	case len(m.Places) == 1:
		q += int(m.Places[0])
	case m.Places != nil:
		q += int(m.Places[b])
	}
	return m.Place + q
}

// sees is what the queries of a tile see of its keys.
func (x *Problem) sees(t *tile) sight {
	if t.rows() == 0 || t.keys() == 0 {
		return none
	}
	first, last := x.place(t.b, t.q0), x.place(t.b, t.q1-1)
	return min(x.seesPlaces(first, last, t), x.seesPadding(t), x.seesDocuments(first, last, t))
}

// seesPlaces is sees of the mask by places, for queries from one to another.
func (m *mask) seesPlaces(first, last int, t *tile) sight {
	switch {
	case !m.Causal:
		return all
	case t.k0 > last:
		return none
	case m.Window > 0 && t.k1-1 <= first-m.Window && t.k0 >= m.Sinks:
		return none
	case t.k1-1 > first || m.Window > 0 && t.k0 <= last-m.Window && t.k1 > m.Sinks:
		return some
	}
	return all
}

func (x *Problem) seesPadding(t *tile) sight {
	if x.Padding == nil {
		return all
	}
	ids := x.Padding[t.b*x.Keys:][t.k0:t.k1]
	switch zeros := count(ids, 0); zeros {
	case 0:
		return all
	case len(ids):
		return none
	}
	return some
}

func (x *Problem) seesDocuments(first, last int, t *tile) sight {
	if x.Documents == nil {
		return all
	}
	ids := x.Documents[t.b*x.Keys:][:x.Keys]
	queries, keys := ids[first:last+1], ids[t.k0:t.k1]
	least, most := slices.Min(queries), slices.Max(queries)
	switch low, high := slices.Min(keys), slices.Max(keys); {
	case low > most || high < least:
		return none
	case low == high && least == most:
		return all
	}
	return some
}

func count(ids []int32, what int32) (n int) {
	for _, id := range ids {
		if id == what {
			n++
		}
	}
	return n
}

// Hide writes what over the elements of a row, one for each key, that a query does not see.
func (x *Problem) Hide(row []float32, b, query int, what float32) {
	x.hide(row, &tile{b: b, k1: x.Keys}, query, what)
}

// hide writes what over the elements of a row of a tile that its query does not see.
func (x *Problem) hide(row []float32, t *tile, query int, what float32) {
	p := x.place(t.b, query)
	if x.Causal {
		overwrite(row, p+1-t.k0, len(row), what)
		if x.Window > 0 {
			overwrite(row, x.Sinks-t.k0, p-x.Window+1-t.k0, what)
		}
	}
	if x.Padding != nil {
		for i, id := range x.Padding[t.b*x.Keys:][t.k0:t.k1] {
			if id == 0 {
				row[i] = what
			}
		}
	}
	if x.Documents != nil {
		ids := x.Documents[t.b*x.Keys:][:x.Keys]
		own := ids[p]
		for i, id := range ids[t.k0:t.k1] {
			if id != own {
				row[i] = what
			}
		}
	}
}

// overwrite sets elements from to to−1, as far as there are any.
func overwrite(row []float32, from, to int, what float32) {
	for i := max(0, from); i < min(to, len(row)); i++ {
		row[i] = what
	}
}

var hidden = float32(math.Inf(-1))
