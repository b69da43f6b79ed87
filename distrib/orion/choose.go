package orion

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is how a loop is run. The zero value is serially.
type Kind int

// The kinds of schedules (section 5.3.3).
const (
	Serial Kind = iota
	DataParallel
	OneD
	Rotation
	Wavefront
	Unimodular
)

// String is the name of a kind.
func (k Kind) String() string {
	return [...]string{"serial", "data parallel", "1D", "2D without an order (rotation)",
		"2D with an order (wavefront)", "unimodular, then a wavefront"}[k]
}

// maxWorkers is how many there may be.
const maxWorkers = 256

// Options are what a choice may depend on besides the loop. Space and Time are names of dimensions
// that the schedule has to be divided by; "" leaves it to [Choose]. Times is how many parts of time
// there are for each worker: smaller ones are handed on sooner, and of a single one nothing is sent
// while the worker computes.
type Options struct {
	Workers     int
	Space, Time string
	Times       int // 0: two
}

// Choice is how a loop is run. Space and Time are the coefficients of the coordinates that it is
// divided by, one for each dimension; all are 0 where it is not divided.
type Choice struct {
	Loop        *Loop
	Vectors     []Vector
	Kind        Kind
	Workers     int
	Space, Time []int64
	Traffic     []Traffic
	Others      []Other // in the order in which they were considered

	times int // of [Options]
}

// Other is a kind that was not chosen, and why.
type Other struct {
	Kind Kind
	Why  string
}

// candidate is a pair of coordinates that a kind is sound with.
type candidate struct{ space, time []int64 }

// Choose is the first kind that is sound, with the coordinates that have the fewest elements
// communicated. A loop that cannot be divided as the options ask for is an error.
func Choose(l *Loop, o Options) (*Choice, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if o.Workers < 1 || o.Workers > maxWorkers {
		return nil, fmt.Errorf("%d workers: want 1 to %d", o.Workers, maxWorkers)
	}
	wanted, err := o.wanted(l)
	if err != nil {
		return nil, err
	}
	c := &Choice{Loop: l, Vectors: l.Vectors(), Workers: o.Workers, times: o.Times,
		Space: make([]int64, len(l.Space)), Time: make([]int64, len(l.Space))}
	for _, kind := range []Kind{DataParallel, OneD, Rotation, Wavefront, Unimodular} {
		c.consider(kind, wanted)
	}
	if c.Kind != Serial {
		c.Others = append(c.Others, Other{Serial, "iterations can run at the same time"})
	} else if wanted != (sides{-1, -1}) {
		return nil, fmt.Errorf("the loop cannot be divided by %s: %s", o.named(), c.refusals())
	}
	c.Traffic = c.traffic(candidate{c.Space, c.Time})
	return c, nil
}

// sides are the dimensions that were asked for, and -1.
type sides struct{ space, time int }

func (o Options) wanted(l *Loop) (s sides, err error) {
	s = sides{-1, -1}
	if o.Space != "" {
		if s.space, err = l.dim(o.Space); err != nil {
			return s, fmt.Errorf("space: %w", err)
		}
	}
	if o.Time != "" {
		if s.time, err = l.dim(o.Time); err != nil {
			return s, fmt.Errorf("time: %w", err)
		}
	}
	if s.space >= 0 && s.space == s.time {
		return s, fmt.Errorf("space and time are both %s: want two dimensions", o.Space)
	}
	return s, nil
}

func (o Options) named() string {
	var words []string
	if o.Space != "" {
		words = append(words, "space "+o.Space)
	}
	if o.Time != "" {
		words = append(words, "time "+o.Time)
	}
	return strings.Join(words, " and ")
}

// allow reports whether a candidate is by what was asked for.
func (s sides) allow(c candidate) bool {
	return (s.space < 0 || only(c.space) == s.space) && (s.time < 0 || only(c.time) == s.time)
}

// only is the dimension that a coordinate is, and -1 of one that is not a dimension.
func only(row []int64) int {
	at := -1
	for k, x := range row {
		switch {
		case x == 0:
		case x != 1 || at >= 0:
			return -1
		default:
			at = k
		}
	}
	return at
}

// consider chooses a kind if it is sound and none was chosen, or notes why not.
func (c *Choice) consider(kind Kind, wanted sides) {
	found, why := c.candidates(kind)
	allowed := slices.DeleteFunc(found, func(x candidate) bool { return !wanted.allow(x) })
	switch {
	case c.Kind != Serial && why == "":
		c.Others = append(c.Others, Other{kind, fmt.Sprintf("sound, but %s comes first", c.Kind)})
	case why != "":
		c.Others = append(c.Others, Other{kind, why})
	case len(allowed) == 0:
		c.Others = append(c.Others, Other{kind,
			"sound, but not by the dimensions that were asked for"})
	default:
		c.Kind = kind
		best := allowed[0]
		for _, x := range allowed[1:] {
			if elements(c.traffic(x)) < elements(c.traffic(best)) {
				best = x
			}
		}
		c.Space, c.Time = best.space, best.time
	}
}

// refusals are why no kind was chosen, but for data parallelism.
func (c *Choice) refusals() string {
	var words []string
	for _, o := range c.Others[1:] {
		words = append(words, fmt.Sprintf("%s: %s", o.Kind, o.Why))
	}
	return strings.Join(words, "; ")
}

// candidates are the coordinates by which a kind is sound; or why there are none.
func (c *Choice) candidates(kind Kind) ([]candidate, string) {
	switch {
	case !slices.ContainsFunc(c.Loop.Space, func(d Dim) bool { return d.Size > 1 }):
		return nil, "there is one iteration"
	case kind == DataParallel && !c.Loop.buffers():
		return nil, "no writes are buffered"
	case kind == DataParallel && len(c.Vectors) > 0:
		return nil, "writes that are not buffered make " + c.Vectors[0].String()
	case kind == DataParallel || kind == OneD:
		return c.lines()
	case len(c.Loop.Space) < 2:
		return nil, "the loop has one dimension"
	case kind == Rotation && c.Loop.Ordered:
		return nil, "the loop is ordered"
	case kind == Rotation:
		return c.planes("0 in neither", func(v Vector, i, j int) bool {
			return v[i].zero() || v[j].zero()
		})
	case kind == Wavefront:
		return c.planes("negative in one", func(v Vector, i, j int) bool {
			return !v[i].negative() && !v[j].negative()
		})
	}
	return c.skewed()
}

// lines are the dimensions that are 0 in all vectors.
func (c *Choice) lines() (found []candidate, why string) {
	var broken []string
	for i, d := range c.Loop.Space {
		k := slices.IndexFunc(c.Vectors, func(v Vector) bool { return !v[i].zero() })
		switch {
		case d.Size == 1:
			broken = append(broken, d.Name+" has one index")
		case k >= 0:
			broken = append(broken, fmt.Sprintf("%s is not 0 in %s", d.Name, c.Vectors[k]))
		default:
			found = append(found, candidate{c.unit(i), make([]int64, len(c.Loop.Space))})
		}
	}
	return found, unless(found, broken)
}

// planes are the pairs of dimensions with which all vectors are sound.
func (c *Choice) planes(fault string, sound func(v Vector, i, j int) bool) (found []candidate,
	why string) {
	var broken []string
	for i, d := range c.Loop.Space {
		for j := i + 1; j < len(c.Loop.Space); j++ {
			e := c.Loop.Space[j]
			if d.Size == 1 || e.Size == 1 {
				continue
			}
			k := slices.IndexFunc(c.Vectors, func(v Vector) bool { return !sound(v, i, j) })
			if k >= 0 {
				broken = append(broken, fmt.Sprintf("%s is %s of %s and %s", c.Vectors[k], fault,
					d.Name, e.Name))
				continue
			}
			found = append(found, candidate{c.unit(i), c.unit(j)}, candidate{c.unit(j), c.unit(i)})
		}
	}
	if broken == nil {
		broken = []string{"no two dimensions have more than one index"}
	}
	return found, unless(found, broken)
}

// unless is why nothing was found.
func unless(found []candidate, broken []string) string {
	if len(found) > 0 {
		return ""
	}
	return strings.Join(broken, ", ")
}

// unit is the coordinate of one dimension.
func (c *Choice) unit(i int) []int64 {
	row := make([]int64, len(c.Loop.Space))
	row[i] = 1
	return row
}
