package profile_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/simulate"
	"github.com/gomem/gomem/train"
)

// builder makes a model.
type builder func() (*models.Model, error)

// builders are models, tiny.
var builders = map[string]builder{
	"moe":         tiny(models.NewMoEConfig, models.MoE),
	"transformer": tiny(models.NewTransformerConfig, models.Transformer),
	"resnet":      tiny(models.NewResNetConfig, models.ResNet),
	"wgan":        tiny(models.NewWGANConfig, models.WGAN),
	"lstm-lm":     tiny(models.NewLSTMLMConfig, models.LSTMLM),
	"deepspeech":  tiny(models.NewDeepSpeechConfig, models.DeepSpeech),
}

func tiny[C any](config func(string) (C, error), build func(C) (*models.Model, error)) builder {
	return func() (*models.Model, error) {
		c, err := config("s512")
		if err != nil {
			return nil, err
		}
		return build(c)
	}
}

// inputOf plans a model and gives it two clocks that are the same on every machine:
// the Titan X's as predicted, and slower ones as measured.
func inputOf(t *testing.T, name string) profile.Input {
	t.Helper()
	m, err := builders[name]()
	if err != nil {
		t.Fatal(err)
	}
	p, err := gomem.Plan(t.Context(), m.Graph, gomem.Options{Policy: "thesis", Partition: 20,
		DeviceBytes: m.DeviceBytes, HostBytes: m.HostBytes}, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	in := profile.Input{Plan: p.Results[0].Plan, Graph: p.Graph, Model: m.Name, Size: m.Size}
	in.Machine = profile.Machine{Name: "titanx", PeakGFLOPS: 4380, InGBps: 12, OutGBps: 12}
	in.Predicted = clock(t, in, 1)
	for _, slower := range []float64{1.5, 1.25, 2} {
		in.Measured = append(in.Measured, clock(t, in, slower))
	}
	for _, s := range in.Plan.Spaces {
		in.Used = append(in.Used, s.Bytes)
	}
	in.Facts = profile.Facts{VanillaDevice: 10 * in.Plan.Spaces[0].Bytes,
		MinDevice: in.Plan.Spaces[0].Bytes - 1024, Changes: []profile.Change{
			{Flag: "--partition 40", Fits: true, DeviceBytes: in.Plan.Spaces[0].Bytes + 1024,
				CopiedBytes: profile.Copied(in.Plan) / 2},
		}}
	return in
}

// clock simulates a Titan X whose operations are slower.
func clock(t *testing.T, in profile.Input, slower float64) profile.Run {
	t.Helper()
	m, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	m.Device.FLOPs /= slower
	m.Device.Launch *= slower
	return profile.Simulated(simulate.Simulate(in.Plan, in.Graph, m.For(in.Model, nil)))
}

func explain(t *testing.T, in profile.Input) *profile.Profile {
	t.Helper()
	p, err := profile.New(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestText is what people read of a small model. After a change run it with
// -rewrite and read the difference.
func TestText(t *testing.T) {
	datadriven.RunTest(t, "testdata/text", func(t *testing.T, d *datadriven.TestData) string {
		in := inputOf(t, d.CmdArgs[0].Key)
		if !d.HasArg("measured") {
			in.Measured, in.Used = nil, nil
		}
		if !d.HasArg("predicted") {
			in.Predicted = nil
		}
		var b strings.Builder
		if err := explain(t, in).Report.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	})
}

// TestModels: what is true of every profile is true of the five models.
func TestModels(t *testing.T) {
	longtest.Skip(t)
	for name := range builders {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, name)
			p := explain(t, in)
			sums(t, in.Plan, &p.Report)
			roundTrip(t, &p.Report)
			narrow(t, &p.Report)
			page(t, p)
			timeline(t, in, p)
			for _, c := range []*profile.Clock{p.Report.Predicted, p.Report.Measured} {
				if d := c.ComputeMS + c.ExposedMS + c.IdleMS - c.StepMS; math.Abs(d) > 1e-3 {
					t.Errorf("%+v: the parts of a step miss it by %v ms", c, d)
				}
				if d := c.HiddenMS + c.ExposedMS - c.CopyMS; math.Abs(d) > 1e-3 {
					t.Errorf("%+v: the parts of copies miss them by %v ms", c, d)
				}
			}
			if len(p.Report.Advice) < 4 {
				t.Errorf("advice %q", p.Report.Advice)
			}
		})
	}
}

// sums demands that tables add up to the plan.
func sums(t *testing.T, p *plan.Plan, r *profile.Report) {
	t.Helper()
	var in, out, copied int64
	operations := 0
	for _, x := range r.Parts {
		in, out, operations = in+x.In, out+x.Out, operations+x.Operations
	}
	for _, c := range r.Copies {
		copied += c.Bytes
	}
	traffic := p.Traffic()
	if in != traffic.In() || out != traffic.Out() || copied != in+out ||
		operations != p.Launches() {
		t.Errorf("%d in, %d out, %d operations; the plan has %v and %d", in, out, operations,
			traffic, p.Launches())
	}
	for i, s := range r.Spaces {
		var live int64
		for _, bytes := range s.Peak.Categories {
			live += bytes
		}
		if live != s.Peak.Live || live+s.Peak.Gaps != s.Bytes || s.Bytes != p.Spaces[i].Bytes {
			t.Errorf("%s: %+v of %d", s.Name, s.Peak, p.Spaces[i].Bytes)
		}
		for _, line := range []*profile.Timeline{s.Predicted, s.Measured} {
			full(t, s, line)
		}
	}
}

// full demands that a timeline adds up, within the peak.
func full(t *testing.T, s profile.Space, line *profile.Timeline) {
	t.Helper()
	for i, total := range line.Bytes {
		var sum int64
		for _, bytes := range line.Categories {
			sum += bytes[i]
		}
		if sum != total || total > s.Bytes {
			t.Fatalf("%s, part %d: %d, the categories are %d, the peak %d", s.Name, i, total, sum,
				s.Bytes)
		}
	}
}

// roundTrip demands that JSON says all of a report.
func roundTrip(t *testing.T, r *profile.Report) {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	var back profile.Report
	if err := d.Decode(&back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*r, back) {
		t.Errorf("%+v\nis read back as\n%+v", *r, back)
	}
}

// narrow demands lines of 80 columns without spaces at their ends.
func narrow(t *testing.T, r *profile.Report) {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > 80 || strings.HasSuffix(line, " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// page demands that the page needs nothing from elsewhere, and has its data.
func page(t *testing.T, p *profile.Profile) {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"http:", "https:", "//cdn", "src=", "href=", "url(", "@import",
		"GOMEM_DATA"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(text, `<div id="view"><div id="head">`) {
		t.Error("the header of the steps does not scroll with them")
	}
	_, data, _ := strings.Cut(text, `<script type="application/json" id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var x struct {
		Steps  [][]any
		Values [][]int64
		Clocks []struct{ Start, Took, From, To []float64 }
	}
	if err := json.Unmarshal([]byte(data), &x); err != nil {
		t.Fatal(err)
	}
	for _, c := range x.Clocks {
		if len(c.Start) != len(x.Steps) || len(c.Took) != len(x.Steps) ||
			len(c.From) != len(x.Values) || len(c.To) != len(x.Values) {
			t.Errorf("%d, %d times of %d steps, %d, %d of %d values", len(c.Start), len(c.Took),
				len(x.Steps), len(c.From), len(c.To), len(x.Values))
		}
	}
	if len(x.Clocks) != 2 || len(x.Steps) != p.Report.Steps {
		t.Errorf("%d clocks, %d steps", len(x.Clocks), len(x.Steps))
	}
}

// entry is what a viewer of timelines reads.
type entry struct {
	Name, Ph string
	TS, Dur  float64
	PID, TID int
	ID       int
	Args     map[string]any
}

// timeline demands a trace in which flows pair up and counters go forward in time.
func timeline(t *testing.T, in profile.Input, p *profile.Profile) {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteTrace(&b); err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []entry }
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	type counter struct {
		pid  int
		name string
	}
	last, begun, ended := map[counter]float64{}, map[int]float64{}, map[int]bool{}
	count := map[string]int{}
	for _, e := range file.TraceEvents {
		count[e.Ph]++
		switch e.Ph {
		case "C":
			at := counter{e.PID, e.Name}
			if before, ok := last[at]; ok && e.TS <= before {
				t.Fatalf("%v at %v, after %v", at, e.TS, before)
			}
			if bytes := e.Args["bytes"].(float64); bytes < 0 {
				t.Fatalf("%v is %v", at, bytes)
			}
			last[at] = e.TS
		case "s":
			begun[e.ID] = e.TS
		case "f":
			if from, ok := begun[e.ID]; !ok || ended[e.ID] || e.TS < from {
				t.Fatalf("flow %d ends at %v, begun at %v", e.ID, e.TS, from)
			}
			ended[e.ID] = true
		}
	}
	clocks := 1 + min(1, len(in.Measured))
	if len(begun) != len(ended) || len(begun) == 0 || len(last) != clocks*len(in.Plan.Spaces) {
		t.Errorf("%d flows begin, %d end, %d counters", len(begun), len(ended), len(last))
	}
	runs := 1 + len(in.Measured)
	if count["X"] != runs*(1+len(in.Plan.Steps)) || count["i"] != runs {
		t.Errorf("%v of %d runs of %d steps", count, runs, len(in.Plan.Steps))
	}
}

// TestNothingKnown: a plan alone has a profile, but nothing to draw.
func TestNothingKnown(t *testing.T) {
	in := inputOf(t, "transformer")
	p := explain(t, profile.Input{Plan: in.Plan, Graph: in.Graph})
	roundTrip(t, &p.Report)
	narrow(t, &p.Report)
	if p.Report.Predicted != nil || p.Report.Measured != nil || len(p.Report.Ops) > 0 ||
		p.Report.Spaces[0].Peak.Largest == nil {
		t.Errorf("%+v", p.Report)
	}
	var b bytes.Buffer
	if err := p.WritePNG(&b); err != profile.ErrNoTimes {
		t.Errorf("a figure without times: %v", err)
	}
	if err := p.WriteHTML(&b); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := p.WriteTrace(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("a trace of nothing: %v, %s", err, &b)
	}
}

// TestFigures: there are pictures, and SVG has its font.
func TestFigures(t *testing.T) {
	p := explain(t, inputOf(t, "wgan"))
	var png, svg bytes.Buffer
	if err := p.WritePNG(&png); err != nil || !bytes.HasPrefix(png.Bytes(), []byte("\x89PNG")) {
		t.Errorf("%v, %.8q", err, png.Bytes())
	}
	if err := p.WriteSVG(&svg); err != nil || !strings.Contains(svg.String(), "font-face") {
		t.Errorf("%v, %.80q", err, svg.Bytes())
	}
}

// TestRefused: what does not belong together is an error in one line.
func TestRefused(t *testing.T) {
	in, other := inputOf(t, "transformer"), graph.New()
	short := in.Predicted[1:]
	backwards := append(profile.Run{{Start: 2, End: 1}}, short...)
	early := append(profile.Run{{Start: -1, End: 1}}, short...)
	for _, c := range []struct {
		says   string
		change func(*profile.Input)
	}{
		{"no plan", func(in *profile.Input) { in.Plan = nil }},
		{"no plan or no graph", func(in *profile.Input) { in.Graph = nil }},
		{"another graph", func(in *profile.Input) { in.Graph = other }},
		{"a run has", func(in *profile.Input) { in.Predicted = short }},
		{"a run has 0 steps", func(in *profile.Input) { in.Measured = []profile.Run{nil} }},
		{"step 0 is done", func(in *profile.Input) { in.Predicted = backwards }},
		{"step 0 is done", func(in *profile.Input) { in.Measured = []profile.Run{early} }},
	} {
		x := in
		c.change(&x)
		_, err := profile.New(x)
		if err == nil || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// TestMedian: the run of median length draws, and an operation has its median.
func TestMedian(t *testing.T) {
	in := inputOf(t, "transformer")
	r := explain(t, in).Report
	want := float64(length(in.Measured[0]).Nanoseconds()) / 1e6 // of 1.5, 1.25 and 2
	if r.Measured.StepMS != want || r.Measured.Runs != 3 {
		t.Errorf("%v ms of %d runs, want %v", r.Measured.StepMS, r.Measured.Runs, want)
	}
	o := r.Ops[0]
	took := in.Measured[0][o.Step]
	if got := float64((took.End - took.Start).Nanoseconds()) / 1e6; *o.MeasuredMS != got {
		t.Errorf("%s took %v ms, want %v", o.Name, *o.MeasuredMS, got)
	}
}

func length(r profile.Run) time.Duration {
	var end time.Duration
	for _, s := range r {
		end = max(end, s.End)
	}
	return end
}

// TestAgain: what is executed a second time is told from the first.
func TestAgain(t *testing.T) {
	in := inputOf(t, "transformer")
	p := *in.Plan
	for _, s := range in.Plan.Steps {
		if do, ok := s.Do.(plan.Launch); ok && do.Mutates == 0 {
			s.Part, s.Wait = p.Parts-1, nil
			p.Steps = append(p.Steps, s)
			break
		}
	}
	in.Plan, in.Measured = &p, nil
	in.Predicted = clock(t, in, 1)
	r := explain(t, in).Report
	last := in.Predicted[len(p.Steps)-1]
	if want := float64((last.End - last.Start).Nanoseconds()) / 1e6; r.Again.Count != 1 ||
		*r.Again.PredictedMS != want || r.Again.MeasuredMS != nil {
		t.Errorf("%+v, want %v ms", r.Again, want)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "1 operation again") {
		t.Errorf("%v in\n%s", err, &b)
	}
}

// TestThirdSpace: a plan with a disk has a profile of it, and copies to and from it
// are neither to nor from the device.
func TestThirdSpace(t *testing.T) {
	in := inputOf(t, "transformer")
	p := *in.Plan
	disk := plan.SlotID(len(p.Slots))
	var feed plan.SlotID
	for _, b := range p.Feeds {
		feed = b.Slot
	}
	bytes := p.Slots[feed].Bytes
	p.Spaces = append(p.Spaces[:2:2], plan.Space{Name: "disk", Bytes: bytes, Budget: 1 << 40})
	p.Streams = append(p.Streams[:len(p.Streams):len(p.Streams)], plan.Stream{Name: "write",
		Engine: space.Copier(space.Host, 2)})
	p.Slots = append(p.Slots[:disk:disk], plan.Slot{Space: 2, Bytes: bytes,
		Value: p.Slots[feed].Value, Type: p.Slots[feed].Type, To: len(p.Steps)})
	p.Steps = append(p.Steps[:len(p.Steps):len(p.Steps)], plan.Step{Node: p.Feeds[0].Node,
		Name: p.Feeds[0].Name, Part: p.Parts - 1, Stream: plan.StreamID(len(p.Streams) - 1),
		Do: plan.Copy{Src: plan.Ref{Slot: feed}, Dst: plan.Ref{Slot: disk}, Bytes: bytes}})
	in.Plan, in.Measured = &p, nil
	in.Predicted = clock(t, in, 1)
	x := explain(t, in)
	last := x.Report.Parts[len(x.Report.Parts)-1]
	before := explain(t, inputOf(t, "transformer")).Report.Parts
	if s := x.Report.Spaces[2]; s.Bytes != bytes || s.Predicted == nil || s.Budget != 1<<40 ||
		last.Out != before[len(before)-1].Out || last.In != before[len(before)-1].In {
		t.Errorf("%+v, %+v", s, last)
	}
	roundTrip(t, &x.Report)
	narrow(t, &x.Report)
	timeline(t, in, x)
}
