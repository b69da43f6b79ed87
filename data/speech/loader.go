package speech

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// Defaults and limits of LoaderOptions.
const (
	defaultUtterances = 16
	defaultFrames     = 165 // 3.3 seconds
	maxElements       = 1 << 30
)

// LoaderOptions shapes batches. The zero value gives 16 utterances of up to 165
// frames, 3.3 seconds, and of up to a label for two frames.
type LoaderOptions struct {
	Utterances int    // of a batch; 0 means 16
	Frames     int    // of an utterance, at most; 0 means 165
	Labels     int    // of an utterance, at most; 0 means Frames/2
	Seed       uint64 // selects the order of training
}

// withDefaults fills the zero fields.
func (o LoaderOptions) withDefaults() LoaderOptions {
	if o.Utterances == 0 {
		o.Utterances = defaultUtterances
	}
	if o.Frames == 0 {
		o.Frames = defaultFrames
	}
	if o.Labels == 0 {
		o.Labels = max(1, o.Frames/2)
	}
	return o
}

// Validate reports the first field that no loader can use.
func (o LoaderOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Utterances < 1:
		return fmt.Errorf("batch of %d utterances: give at least 1", o.Utterances)
	case o.Frames < 1:
		return fmt.Errorf("utterances of %d frames: give at least 1", o.Frames)
	case o.Labels < 1:
		return fmt.Errorf("utterances of %d labels: give at least 1", o.Labels)
	case max(o.Frames, o.Labels) > maxElements/Coefficients/o.Utterances:
		return fmt.Errorf("batch of %d utterances of %d frames and %d labels: give at most %d "+
			"frames in all",
			o.Utterances, o.Frames, o.Labels, maxElements/Coefficients)
	}
	return nil
}

// fits reports whether an utterance has room, and frames enough for its labels.
func (o LoaderOptions) fits(u Utterance) bool {
	return u.Frames <= o.Frames && utf8.RuneCountInString(u.Text) <= o.Labels &&
		framesFor(u.Text) <= u.Frames
}

// Loader makes batches. It is a data.Batches: its methods are pure functions, but
// for what happens to files behind its back (see Err), that any number of
// goroutines may call.
type Loader struct {
	opts           LoaderOptions
	set            *Set
	train, heldOut []Utterance
	info           data.Info
	failure        atomic.Pointer[error]
}

// NewLoader prepares batches of the set s. One with less than a batch of training
// utterances that fit gives a *data.Error.
func NewLoader(s *Set, o LoaderOptions) (*Loader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l := &Loader{opts: o.withDefaults(), set: s, info: s.Info}
	l.train, l.heldOut = l.fitting(s.Train), l.fitting(s.HeldOut)
	if len(l.train) < l.opts.Utterances && !s.whole {
		err := fmt.Errorf("%d training utterances of up to %d frames and %d labels do not fill "+
			"one batch of %d: %s", len(l.train), l.opts.Frames, l.opts.Labels, l.opts.Utterances,
			data.Instead(len(l.train), "a larger set, or longer rows"))
		return nil, &data.Error{Spec: s.Info.Spec, Err: err}
	}
	l.info.HeldOut, l.info.Pairs = len(l.heldOut), len(l.train)+len(l.heldOut)
	if left := s.Info.Pairs - l.info.Pairs; left > 0 {
		l.info.Dropped += left
		l.info.Reason = "too long, or with too few frames for the text"
		if s.Info.Dropped > 0 {
			l.info.Reason = s.Info.Reason + "; " + l.info.Reason
		}
	}
	return l, nil
}

func (l *Loader) fitting(us []Utterance) (kept []Utterance) {
	for _, u := range us {
		if l.opts.fits(u) {
			kept = append(kept, u)
		}
	}
	return kept
}

// Info is that of the set, less what does not fit: it counts among the dropped.
func (l *Loader) Info() data.Info { return l.info }

// StepsPerEpoch is the number of full batches of training utterances. The few that
// an epoch leaves over differ from epoch to epoch.
func (l *Loader) StepsPerEpoch() int { return l.order().Steps() }

func (l *Loader) order() data.Order {
	return data.Order{Items: len(l.train), Batch: l.opts.Utterances, Seed: l.opts.Seed}
}

// HeldOutBatches is the number of batches that hold every held-out utterance once.
// It is 0 for a set without any.
func (l *Loader) HeldOutBatches() int {
	return (len(l.heldOut) + l.opts.Utterances - 1) / l.opts.Utterances
}

// Train makes the batch of a step, from 0. It depends on nothing but the set, the
// options and the step; epochs follow each other, each in its own order.
func (l *Loader) Train(step int) data.Batch {
	chosen := make([]Utterance, l.opts.Utterances)
	for row := range chosen {
		chosen[row] = l.train[l.order().Item(step, row)]
	}
	return l.batch(chosen)
}

// Uncounted is a batch of nothing: see [data.Maskable].
func (l *Loader) Uncounted(int) (b data.Batch, ok bool) { return l.batch(nil), true }

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches, in the order of the set.
// Behind the last utterance are some without frames and labels, whose loss is 0.
func (l *Loader) HeldOut(i int) data.Batch {
	begin := i * l.opts.Utterances
	return l.batch(l.heldOut[begin:min(begin+l.opts.Utterances, len(l.heldOut))])
}

// Err is the first failure to read a file that could be read when the set was
// opened, if there was one: batches have an utterance without frames in its place.
func (l *Loader) Err() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// batch gives utterances as four inputs: features f32[Frames Utterances
// Coefficients], zero behind the last frame of each; labels i32[Utterances
// Labels], zero behind the last; and their numbers, labels' i32[Utterances] and
// frames' i32[Utterances]. Units are the utterances that are there.
func (l *Loader) batch(us []Utterance) data.Batch {
	n := l.opts.Utterances
	features := tensor.New(tensor.Of(tensor.F32, l.opts.Frames, n, Coefficients))
	text := tensor.New(tensor.Of(tensor.I32, n, l.opts.Labels))
	lengths, frames := tensor.New(tensor.Of(tensor.I32, n)), tensor.New(tensor.Of(tensor.I32, n))
	inParallel(len(us), func(k int) {
		x, err := l.set.features(us[k])
		if err != nil {
			l.failure.CompareAndSwap(nil, &err)
			return
		}
		for f := range min(us[k].Frames, len(x)/Coefficients) {
			copy(features.F32()[(f*n+k)*Coefficients:], x[f*Coefficients:][:Coefficients])
		}
		n := copy(text.I32()[k*l.opts.Labels:], l.set.Letters.labels(us[k].Text))
		lengths.I32()[k], frames.I32()[k] = int32(n), int32(us[k].Frames)
	})
	units := 0
	for _, f := range frames.I32() {
		units += int(min(f, 1))
	}
	return data.Batch{Inputs: []tensor.View{features, text, lengths, frames}, Units: units}
}

// features are those of an utterance of the set.
func (s *Set) features(u Utterance) ([]float32, error) {
	if u.features != nil {
		return u.features, nil
	}
	samples, err := s.samples(u)
	if err != nil {
		return nil, err
	}
	return s.analyser.features(samples), nil
}

// samples is the sound of an utterance of the set whose features are not kept.
func (s *Set) samples(u Utterance) ([]float32, error) {
	if u.Path == "" {
		return speak(u.Text, s.seed), nil
	}
	samples, rate, file, err := readWAV(u.Path)
	if err == nil && file.Sum != u.sum {
		err = errors.New("has changed since it was listed: keep it as it is")
	}
	if err == nil {
		samples = s.analyser.run(samples, rate)
	}
	if err != nil {
		return nil, &data.Error{Spec: s.Info.Spec, Path: u.Path, Err: err}
	}
	return samples, nil
}

// inParallel calls f for each number below n, on all cores.
func inParallel(n int, f func(i int)) {
	var running sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	running.Wait()
}
