package profile

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/gomem/gomem/plan"
)

// Report is a profile, as gomem profile --json prints it. Sizes are bytes and
// times milliseconds. What is not known is left out: predicted times without a
// simulation, measured ones without a run.
type Report struct {
	Type       string   `json:"type"` // "profile"
	Model      string   `json:"model"`
	Size       string   `json:"size"`
	Parameters int64    `json:"parameters"`
	Plan       string   `json:"plan"`       // its title
	Steps      int      `json:"plan_steps"` // operations and copies
	Partitions int      `json:"partitions"` // of the plan
	Machine    Machine  `json:"machine"`
	Predicted  *Clock   `json:"predicted,omitempty"`
	Measured   *Clock   `json:"measured,omitempty"`
	Spaces     []Space  `json:"spaces"`
	Parts      []Part   `json:"parts"`
	Copies     []Copies `json:"copies"` // by reason, in the order of the plan's reasons
	Again      Again    `json:"recomputed"`
	Ops        []Op     `json:"operations"`
	Kinds      []Kind   `json:"kinds"` // of operations, the slowest first
	Facts      Facts    `json:"facts"`
	Advice     []string `json:"advice"` // sentences
}

// Machine is what predictions are by, and what speeds are compared with. Zero is
// unknown.
type Machine struct {
	Name       string  `json:"name,omitempty"`
	PeakGFLOPS float64 `json:"peak_gflops,omitempty"` // of a large matrix product
	InGBps     float64 `json:"in_gb_per_s,omitempty"` // of copies to the device
	OutGBps    float64 `json:"out_gb_per_s,omitempty"`
}

// Clock is where the time of a step goes. Compute and copy overlap by hidden;
// compute, exposed and idle add up to the step.
type Clock struct {
	StepMS    float64  `json:"step_ms"`
	Runs      int      `json:"runs"`       // measured steps, of which this is the median
	ComputeMS float64  `json:"compute_ms"` // any operation runs
	HostMS    float64  `json:"host_ms"`    // of that, on the host alone
	CopyMS    float64  `json:"copy_ms"`    // any copy runs
	HiddenMS  float64  `json:"hidden_ms"`  // a copy and an operation run
	ExposedMS float64  `json:"exposed_ms"` // a copy runs, and no operation
	IdleMS    float64  `json:"idle_ms"`    // nothing runs
	Streams   []Stream `json:"streams"`
}

// Stream is how busy a stream is.
type Stream struct {
	Name   string  `json:"name"`
	Steps  int     `json:"steps"`
	BusyMS float64 `json:"busy_ms"`
}

// Space is a memory and what it holds.
type Space struct {
	Name      string    `json:"name"`
	Bytes     int64     `json:"bytes"`  // the plan's peak: the largest end of a slot
	Budget    int64     `json:"budget"` // 0 is none
	Used      int64     `json:"used"`   // the peak of the run; 0 if there was none
	Peak      Peak      `json:"peak"`   // what sets it
	Predicted *Timeline `json:"predicted,omitempty"`
	Measured  *Timeline `json:"measured,omitempty"`
}

// Peak is the operation during which the most bytes are live, and what holds them.
type Peak struct {
	Step        int                `json:"step"`
	Partition   int                `json:"partition"`
	At          string             `json:"at"`                     // the operation's node
	Pos         string             `json:"pos,omitempty"`          // its line in the model
	PredictedMS *float64           `json:"predicted_ms,omitempty"` // when it begins
	MeasuredMS  *float64           `json:"measured_ms,omitempty"`
	Live        int64              `json:"live_bytes"`
	Gaps        int64              `json:"gap_bytes"` // between what is live
	Categories  map[Category]int64 `json:"categories"`
	Slots       int                `json:"slots"`   // how many are live
	Largest     []Holder           `json:"largest"` // ten at most
}

// Holder is a value that holds memory.
type Holder struct {
	Value    string   `json:"value"`
	Type     string   `json:"type"`
	Bytes    int64    `json:"bytes"`
	Category Category `json:"category"`
	Pos      string   `json:"pos,omitempty"` // file and line in the model
}

// Timeline is the bytes of a space over a step, in parts of equal length: of each,
// the most, and what holds it.
type Timeline struct {
	StepMS     float64              `json:"step_ms"`
	Bytes      []int64              `json:"bytes"`
	Categories map[Category][]int64 `json:"categories"`
}

// Times are how long copies take, of which a part is hidden behind operations, and a part, at
// least as large, would be if each were made at the best time for it.
type Times struct {
	MS         float64 `json:"ms"`
	HiddenMS   float64 `json:"hidden_ms"`
	HideableMS float64 `json:"hideable_ms"`
}

// Copies are those of one reason.
type Copies struct {
	Reason    string `json:"reason"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes"`
	Predicted *Times `json:"predicted,omitempty"`
	Measured  *Times `json:"measured,omitempty"`
}

// Again is what is computed once more, to save memory: the executions of nodes after
// their first.
type Again struct {
	Count       int      `json:"count"`
	FLOPs       int64    `json:"flops"`
	PredictedMS *float64 `json:"predicted_ms,omitempty"`
	MeasuredMS  *float64 `json:"measured_ms,omitempty"`
}

// Part is a partition.
type Part struct {
	Part       int       `json:"part"`
	First      int       `json:"first_step"`
	Last       int       `json:"last_step"`
	Operations int       `json:"operations"`
	FLOPs      int64     `json:"flops"`
	In         int64     `json:"in_bytes"`  // copied to the device
	Out        int64     `json:"out_bytes"` // and from it
	Device     int64     `json:"device_bytes"`
	Predicted  *PartTime `json:"predicted,omitempty"`
	Measured   *PartTime `json:"measured,omitempty"`
}

// PartTime is when a partition's steps are done. Those of neighbours overlap.
type PartTime struct {
	StartMS   float64 `json:"start_ms"`
	EndMS     float64 `json:"end_ms"`
	ComputeMS float64 `json:"compute_ms"` // its operations, one after the other
	ExposedMS float64 `json:"exposed_ms"` // its copies, while no operation runs
}

// Op is one execution of an operation.
type Op struct {
	Step        int      `json:"step"`
	Partition   int      `json:"partition"`
	Name        string   `json:"name"`
	Op          string   `json:"op"`
	Shapes      string   `json:"shapes"` // operands → first result
	Pos         string   `json:"pos,omitempty"`
	FLOPs       int64    `json:"flops"`
	Bytes       int64    `json:"bytes"`
	PredictedMS *float64 `json:"predicted_ms,omitempty"`
	MeasuredMS  *float64 `json:"measured_ms,omitempty"`
	GFLOPS      float64  `json:"gflops"` // by the measured time, else by the predicted
}

// Kind is all executions of one operation.
type Kind struct {
	Op          string   `json:"op"`
	Count       int      `json:"count"`
	FLOPs       int64    `json:"flops"`
	Bytes       int64    `json:"bytes"`
	PredictedMS *float64 `json:"predicted_ms,omitempty"`
	MeasuredMS  *float64 `json:"measured_ms,omitempty"`
	GFLOPS      float64  `json:"gflops"`
}

// Facts are what is known of other plans of the same model. Zero is unknown.
type Facts struct {
	VanillaDevice int64    `json:"vanilla_device_bytes,omitempty"` // peak without any copy
	MinDevice     int64    `json:"min_device_bytes,omitempty"`     // smallest budget
	Changes       []Change `json:"changes,omitempty"`
}

// Change is a flag that was tried, and the plan that it leads to.
type Change struct {
	Flag        string  `json:"flag"`
	Fits        bool    `json:"fits"` // within the budgets
	DeviceBytes int64   `json:"device_bytes"`
	CopiedBytes int64   `json:"copied_bytes"`           // a step, inputs and results included
	StepMS      float64 `json:"predicted_ms,omitempty"` // 0 is unknown
}

// Copied is how many bytes a plan copies a step.
func Copied(p *plan.Plan) int64 {
	var total int64
	for _, bytes := range p.Traffic() {
		total += bytes
	}
	return total
}

// WriteJSON writes the report on one line.
func (r *Report) WriteJSON(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}
