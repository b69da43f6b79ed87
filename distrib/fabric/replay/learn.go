package replay

import (
	"math"
	"math/rand/v2"
)

// Task is what is learnt: the weights of a logistic regression, from samples that are drawn.
type Task struct {
	features, classes, batch int
	x, test                  [][]float64
	y, truth                 []int
}

// NewTask draws one.
func NewTask(seed uint64) *Task {
	t := &Task{features: 20, classes: 5, batch: 8}
	r := rand.New(rand.NewPCG(seed, 3))
	teacher := make([]float64, t.features*t.classes)
	for i := range teacher {
		teacher[i] = r.NormFloat64()
	}
	sample := func() ([]float64, int) {
		x := make([]float64, t.features)
		for i := range x {
			x[i] = r.NormFloat64() * (0.2 + 2*float64(i)/float64(t.features))
		}
		p := t.softmax(teacher, x)
		u := r.Float64()
		for c := range p {
			if u -= p[c]; u < 0 {
				return x, c
			}
		}
		return x, t.classes - 1
	}
	for range 4000 {
		x, y := sample()
		t.x, t.y = append(t.x, x), append(t.y, y)
	}
	for range 500 {
		x, y := sample()
		t.test, t.truth = append(t.test, x), append(t.truth, y)
	}
	return t
}

func (t *Task) softmax(w, x []float64) []float64 {
	p, sum := make([]float64, t.classes), 0.0
	for c := range p {
		for i, v := range x {
			p[c] += float64(w[c*t.features+i] * v)
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// gradient adds that of an update's samples, at some weights and scaled, to others.
func (t *Task) gradient(to, w []float64, b Base, scale float64) {
	r := rand.New(rand.NewPCG(uint64(b.Worker), uint64(b.Count)))
	for range t.batch {
		i := r.IntN(len(t.x))
		p := t.softmax(w, t.x[i])
		p[t.y[i]]--
		for c, d := range p {
			for k, v := range t.x[i] {
				to[c*t.features+k] += float64(scale / float64(t.batch) * d * v)
			}
		}
	}
}

// loss is the cross entropy of samples that are not learnt from.
func (t *Task) loss(w []float64) (sum float64) {
	for i, x := range t.test {
		sum -= math.Log(t.softmax(w, x)[t.truth[i]])
	}
	return sum / float64(len(t.test))
}

// Point is a loss at a time.
type Point struct{ At, Loss float64 }

// Learn is how a job's loss falls, with a step size for each update. A point is noted every so many
// updates.
func (l *Log) Learn(t *Task, size float64, every int) (points []Point) {
	versions := [][]float64{make([]float64, t.features*t.classes)}
	seen := 0
	for _, s := range l.Steps {
		last := versions[len(versions)-1]
		w := append([]float64(nil), last...)
		for _, b := range s.Updates {
			t.gradient(w, versions[b.Version], b, -size)
		}
		versions = append(versions, w)
		before := seen / every
		if seen += len(s.Updates); seen/every > before {
			points = append(points, Point{s.At, t.loss(w)})
		}
	}
	return points
}

// Reach is when a loss is reached, and was not left again for two points; infinite if it never is.
func Reach(points []Point, loss float64) float64 {
	for i, p := range points {
		if p.Loss <= loss && (i+1 >= len(points) || points[i+1].Loss <= loss*1.02) {
			return p.At
		}
	}
	return math.Inf(1)
}

// Best is the least time to a loss over step sizes, and the step size.
func (l *Log) Best(t *Task, loss float64, every int, sizes []float64) (at, size float64) {
	at = math.Inf(1)
	for _, s := range sizes {
		points := l.Learn(t, s, every)
		if reached := Reach(points, loss); reached < at {
			at, size = reached, s
		}
	}
	return at, size
}
