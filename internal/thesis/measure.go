package thesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// fullKappa is κ of the thesis' machine at the speed that ResNet-152, Transformer
// and DeepSpeech had on it, 3.2 TFLOP/s. The other two were slower by far: by table
// 6.6 and the work of a step, MoE did 0.77 and WGAN-GP 0.50 TFLOP/s, so that copies
// weighed less.
const fullKappa = 730

// width is by how much the replica is narrower, and does fewer operations a byte.
const width = 8

// replicaKappa gives the replica's copies the weight that they had there.
const replicaKappa = fullKappa / float64(width)

// need is what a plan takes.
type need struct {
	device, host int64
	traffic      plan.Traffic
}

func (n need) within(device, host int64) bool { return n.device <= device && n.host <= host }

func needOf(p *plan.Plan) need {
	return need{p.Spaces[space.Device].Bytes, p.Spaces[space.Host].Bytes, p.Traffic()}
}

// planned is what a training step needs under options.
func planned(ctx context.Context, m *models.Model, o planner.Options) (need, error) {
	r, err := planner.Compile(ctx, m.Graph, objective(m), o)
	if err != nil {
		return need{}, err
	}
	return needOf(r.Plan), nil
}

// least is the least that a training step needs under options.
func least(ctx context.Context, m *models.Model, o planner.Options) (need, error) {
	p, err := planner.Least(ctx, m.Graph, objective(m), o)
	if err != nil {
		return need{}, err
	}
	return needOf(p), nil
}

// The decisions that are compared. None fuses operations: see the package's documentation.
func vanilla() planner.Options {
	return planner.Options{Policy: planner.Vanilla, NoFusion: true}
}

// partitioned is the thesis' +Partition: partitions and swapping, but everything
// else on the device.
func partitioned(size int) planner.Options {
	return planner.Options{Partition: size, NoPlacement: true, NoFusion: true}
}

// placed is the thesis' +Placement on top: all of TensorFlowMem.
func placed(size int) planner.Options {
	return planner.Options{Partition: size, NoFusion: true}
}

// largest is the largest n at which the least that a step needs is within the
// caps. Needs grow almost in proportion to n, so the search begins where two
// probes say that the limit is.
func (r *runner) largest(ctx context.Context, w workload, size string,
	o planner.Options) (int, error) {
	device, host := caps(size)
	known := map[int]bool{}
	probe := func(n int) (need, error) {
		r.progress("%s %s, %s: planning %s %s", w.name, size,
			cmp.Or(o.Policy, planner.Thesis), w.amount(n), w.unit)
		m, err := w.build(size, n)
		if err != nil {
			return need{}, err
		}
		x, err := least(ctx, m, o)
		known[n] = x.within(device, host)
		return x, err
	}
	fits := func(n int) (bool, error) {
		if fit, ok := known[n]; ok {
			return fit, nil
		}
		x, err := probe(n)
		return x.within(device, host), err
	}
	a, err := probe(w.guess[size])
	if err != nil {
		return 0, err
	}
	b, err := probe(2 * w.guess[size])
	if err != nil {
		return 0, err
	}
	return bisect(extrapolate(w.guess[size], a, b, device, host), fits)
}

// extrapolate is the n at which a line through the needs at n and 2n reaches a
// cap.
func extrapolate(n int, a, b need, device, host int64) int {
	at := func(a, b, limit int64) float64 {
		slope := float64(b-a) / float64(n)
		if slope <= 0 {
			return math.Inf(1)
		}
		return float64(n) + float64(limit-a)/slope
	}
	x := min(at(a.device, b.device, device), at(a.host, b.host, host))
	return int(max(1, min(x, 1<<20)))
}

// bisect finds the largest n that fits, from a guess outwards.
func bisect(guess int, fits func(int) (bool, error)) (int, error) {
	good, bad := 0, math.MaxInt32
	step := max(1, guess/50)
	for n := guess; ; step *= 2 {
		ok, err := fits(n)
		if err != nil {
			return 0, err
		}
		if ok {
			good = n
		} else {
			bad = n
		}
		if bad == 1 || good > 0 && bad < math.MaxInt32 {
			break
		}
		if ok {
			n += step
		} else {
			n = max(1, n-step)
		}
	}
	for bad-good > 1 {
		middle := (good + bad) / 2
		ok, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			good = middle
		} else {
			bad = middle
		}
	}
	return good, nil
}

// side is a way to run a model's training step.
type side struct {
	model   *models.Model
	options planner.Options
}

// timing is how long steps take, and of whom the device had how much.
type timing struct {
	seconds []float64 // by side: the median
	need    []need
	kappa   float64
}

// time runs a step of every side in turn. Copies are slowed down to a κ, if it is
// not zero, measured by the first side's speed. Peaks must be those predicted.
func (r *runner) time(ctx context.Context, kappa float64, sides ...side) (timing, error) {
	free, err := r.rounds(ctx, 0, sides...)
	if err != nil {
		return timing{}, err
	}
	if kappa == 0 && r.CopyGbps == 0 {
		return free, nil
	}
	speed := r.CopyGbps * 1e9
	flops := float64(work(sides[0].model)) / free.seconds[0]
	if speed == 0 {
		speed = 2 * flops / kappa
	}
	if sides, err = r.priced(ctx, speed, sides); err != nil {
		return timing{}, err
	}
	slow, err := r.rounds(ctx, speed, sides...)
	slow.kappa = 2 * flops / speed
	return slow, err
}

// rounds times sides in turn, after a warm-up. A speed of copies of 0 is the
// machine's own.
func (r *runner) rounds(ctx context.Context, speed float64, sides ...side) (timing, error) {
	var sessions []*gomem.Session
	defer func() {
		for _, s := range sessions {
			s.Close()
		}
	}()
	for _, s := range sides {
		session, err := gomem.Compile(ctx, s.model.Graph, gomem.Options{
			CopyBytesPerSecond: int64(speed),
		}.With(s.options), objective(s.model))
		if err != nil {
			return timing{}, err
		}
		sessions = append(sessions, session)
	}
	times := make([][]float64, len(sides))
	for round := range r.Runs + 1 {
		for i, s := range sides {
			took, err := step(ctx, sessions[i], s.model)
			if err != nil {
				return timing{}, fmt.Errorf("%s %s: %w", s.model.Name, s.options, err)
			}
			r.progress("%s, %s: %.2f s", s.model.Name, s.options, took.Seconds())
			if round > 0 {
				times[i] = append(times[i], took.Seconds())
			}
		}
	}
	var out timing
	for i := range sides {
		slices.Sort(times[i])
		out.seconds = append(out.seconds, times[i][len(times[i])/2])
		out.need = append(out.need, needOf(sessions[i].Plan(sides[i].model.Objectives[0].Name)))
	}
	return out, nil
}

// step executes a training step and checks that peaks are as predicted.
func step(ctx context.Context, s *gomem.Session, m *models.Model) (time.Duration, error) {
	in := Feeds(m)
	began := time.Now()
	if _, err := s.Step(ctx, m.Objectives[0].Name, in); err != nil {
		return 0, err
	}
	return time.Since(began), foreseen(s)
}

// foreseen reports a peak that is not the one predicted.
func foreseen(s *gomem.Session) error {
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return fmt.Errorf("%s used %d bytes, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	return nil
}

// work is the arithmetic of a training step, in FLOPs.
func work(m *models.Model) (flops int64) {
	for _, w := range m.Work(m.Objectives[0]) {
		flops += w.FLOPs
	}
	return flops
}

// refused reports whether a step is refused for want of memory.
func refused(ctx context.Context, m *models.Model, o planner.Options, device,
	host int64) (bool, error) {
	o.DeviceBytes, o.HostBytes = device, host
	_, err := planner.Compile(ctx, m.Graph, objective(m), o)
	if _, ok := errors.AsType[*planner.ErrOutOfMemory](err); ok {
		return true, nil
	}
	return false, err
}

// Feeds are made-up inputs of any model: noise, and ids that go round. Speech is
// full length with a quarter as many labels as frames, at most all there is room
// for.
func Feeds(m *models.Model) gomem.Feeds {
	f := gomem.Feeds{
		m.Seed: gomem.Pair(1, 1), m.LearningRate: gomem.Scalar(1e-4), m.Step: gomem.Scalar(1),
	}
	for _, v := range m.Data {
		x := gomem.NewTensor(v.Type())
		switch {
		case v.Type().DType == graph.F32:
			noise(x.F32())
		case m.Domain == models.Speech:
			fill(x.I32(), speechNumber(m, v))
		default:
			x = x.To(graph.I32)
			for i := range x.I32() {
				x.I32()[i] = 1 + int32(i*7%(max(2, m.Classes)-1))
			}
		}
		f[v] = x.As(v.Type().DType)
	}
	return f
}

// speechNumber is the value of all elements of an input of speech: frames, labels
// and their numbers.
func speechNumber(m *models.Model, v graph.Value) int32 {
	frames, labels := m.Data[0].Type().Size(0), m.Data[1].Type().Size(1)
	switch v {
	case m.Data[2]:
		return int32(min(labels, frames/4))
	case m.Data[3]:
		return int32(frames)
	}
	return 3
}

func fill(x []int32, value int32) {
	for i := range x {
		x[i] = value
	}
}

// noise fills x with numbers from −1 to 1 that follow no pattern of its shape.
func noise(x []float32) {
	for i := range x {
		x[i] = float32(math.Sin(float64(i) * 12.9898))
	}
}
