package fit

// Outcome is what a probe of a number came to.
type Outcome struct {
	Fits bool
	// Load is the part of the limit that is needed: above 1 where it does not fit;
	// 0 if it is not known. Once it is not, no load counts any longer.
	Load float64
}

// Answer is what is known of the largest number that fits.
type Answer struct {
	Most   int // the largest that is known to fit; 0: none
	Next   int // the smallest above it that is known not to fit; 0: none
	Probes int
}

// Largest finds a number from 1 to limit that fits, while one more does not or is
// beyond the limit. The search begins at start, and if that fits goes on with stride
// more: 1 where start is expected to be the answer. If a probe fails, the error is
// returned with what is known so far.
func Largest(start, stride, limit int, probe func(n int) (Outcome, error)) (Answer, error) {
	s := search{bad: limit + 1, stride: max(stride, 1)}
	for n := min(max(start, 1), limit); s.bad-s.good > 1; n = s.next() {
		o, err := probe(n)
		if err != nil {
			return s.answer(limit), err
		}
		s.learn(n, o)
	}
	return s.answer(limit), nil
}

// search is a gap between a number that fits and one that does not.
type search struct {
	good, bad int     // 0 and limit + 1 to begin with
	load      line    // through the latest two loads
	blind     bool    // a load is not known
	last      Outcome // of the latest probe
	refused   bool    // bad was probed
	stride    int     // by which to grow next
	aims      int     // that were trusted since the gap has halved
	gap       int     // as it was then
	probes    int
}

// line goes through two points, or through one and the origin.
type line struct{ x0, y0, x1, y1 float64 }

// reaches is where the line is at 1; 0 if it is nowhere, or not known.
func (l line) reaches() float64 {
	slope := (l.y1 - l.y0) / (l.x1 - l.x0)
	if !(slope > 0) {
		return 0
	}
	return l.x1 + (1-l.y1)/slope
}

func (s *search) answer(limit int) Answer {
	a := Answer{Most: s.good, Probes: s.probes}
	if s.refused && s.bad <= limit {
		a.Next = s.bad
	}
	return a
}

func (s *search) learn(n int, o Outcome) {
	s.probes++
	s.last = o
	if o.Fits {
		s.good = n
	} else {
		s.bad, s.refused = n, true
	}
	s.load = line{s.load.x1, s.load.y1, float64(n), o.Load}
	s.blind = s.blind || o.Load == 0
}

// growth is by how much the stride grows, and most by how much a number that fits does
// at once.
const growth, most = 3, 16

// next is the number to probe, within the gap.
func (s *search) next() int {
	n := 0
	aim := int(min(max(s.load.reaches(), 0), float64(s.bad)))
	switch {
	case s.blind:
		aim = 0
	case s.good == 0:
		aim = max(1, aim)
	}
	switch {
	case !s.refused:
		n = min(max(aim, s.good+s.stride), most*max(s.good, s.stride))
		s.stride *= growth
	case s.good == 0:
		n = min(max(aim, s.bad/16), s.bad/2)
	default:
		n = s.between(aim)
	}
	return min(max(n, s.good+1), s.bad-1)
}

// trusted is how many aims are trusted before the gap is halved, and apart by how many times
// as much one keeps from the end of the gap as the one before it.
const trusted, apart = 2, 4

// between is a number between one that fits and one that does not.
func (s *search) between(aim int) int {
	width := s.bad - s.good
	if s.gap == 0 || width <= s.gap/2 {
		s.gap, s.aims = width, 0
	}
	if aim == 0 || s.aims == trusted {
		return s.good + width/2
	}
	step := 1
	if s.aims > 0 {
		step = apart
	}
	s.aims++
	if s.last.Fits {
		return max(aim, s.good+step)
	}
	return min(aim, s.bad-step)
}
