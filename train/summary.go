package train

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/gomem/gomem"
)

// Summary is the outcome of a run. As JSON its sizes are bytes.
type Summary struct {
	// done in all, those before a resumption included
	Steps       int     `json:"steps"`
	ResumedFrom int     `json:"resumed_from"` // the step of the checkpoint resumed, or 0
	LossFirst   float64 `json:"loss_first"`   // of this run's first step
	LossLast    float64 `json:"loss_last"`
	// of the last evaluation, the mean over units; 0 if there was none
	EvalLoss    float64            `json:"eval_loss"`
	EvalMetrics map[string]float64 `json:"eval_metrics,omitempty"`
	// averaged in EvalLoss; 0 if nothing was evaluated
	EvalBatches int `json:"eval_batches"`

	Unit string `json:"unit"` // of Options
	// units of a batch a step, over the time of all steps
	UnitsPerSecond float64       `json:"units_per_s"`
	StepMedian     time.Duration `json:"-"`
	StepMillis     float64       `json:"step_ms_median"` // StepMedian in milliseconds

	Usage []gomem.Usage `json:"-"` // of the spaces, the device first
	// Peaks are the plans'; what exchanging took is in Exchanged.
	PredictedDevicePeak int64 `json:"predicted_device_peak_bytes"`
	ActualDevicePeak    int64 `json:"actual_device_peak_bytes"`
	PredictedHostPeak   int64 `json:"predicted_host_peak_bytes"`
	ActualHostPeak      int64 `json:"actual_host_peak_bytes"`
	PredictedDiskPeak   int64 `json:"predicted_disk_peak_bytes,omitempty"`
	ActualDiskPeak      int64 `json:"actual_disk_peak_bytes,omitempty"`

	// over all variables in order of their names; "" on the null device, and where variables
	// are divided among processes
	WeightsSHA256 string `json:"weights_sha256"`
	// of Options.Parallel, and what they exchanged; nothing of a run alone
	Workers   int        `json:"workers,omitempty"`
	Exchanged *Exchanged `json:"exchanged,omitempty"`

	Interrupted  bool `json:"interrupted"`             // the context ended before the run did
	Left         bool `json:"left,omitempty"`          // and other workers went on
	StoppedEarly bool `json:"stopped_early,omitempty"` // by Options.Patience
	BestStep     int  `json:"best_step,omitempty"`     // of evaluations, with Patience
	// with the weights as they are, "" if nobody saved them; after an error the last
	// good one
	Checkpoint string `json:"checkpoint"`
	SavedStep  int    `json:"-"` // the step of the checkpoint
}

// take enters what the spaces needed.
func (s *Summary) take(usage []gomem.Usage) {
	s.Usage = usage
	s.PredictedDevicePeak, s.ActualDevicePeak = s.Usage[0].Predicted, s.Usage[0].Actual
	host := s.Usage[1]
	s.PredictedHostPeak, s.ActualHostPeak = host.Predicted-host.Network, host.Actual
	if host.Actual > 0 {
		s.ActualHostPeak -= host.NetworkUsed
	}
	if len(s.Usage) > 2 {
		s.PredictedDiskPeak, s.ActualDiskPeak = s.Usage[2].Predicted, s.Usage[2].Actual
	}
}

// took enters the times of all steps, which were of so many units in all.
func (s *Summary) took(times []time.Duration, units int) {
	var all time.Duration
	for _, t := range times {
		all += t
	}
	s.UnitsPerSecond = rate(units, all)
	s.StepMedian = median(times)
	s.StepMillis = float64(s.StepMedian) / float64(time.Millisecond)
}

// median is the middle of the times, 0 if there are none.
func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// rate is n a second, 0 if no time has passed.
func rate(n int, t time.Duration) float64 {
	if t <= 0 {
		return 0
	}
	return float64(n) / t.Seconds()
}

// weightsSHA256 identifies the values of all variables: the hash of name, type
// and data of each, in order of their names, in hex; "" where processes divide some. What is
// not finite is an *[ErrNonFinite].
func weightsSHA256(s *gomem.Session) (string, error) {
	if divided(s) {
		return "", nil
	}
	h := sha256.New()
	for _, v := range s.Variables() {
		h.Write([]byte(v.Node.Name))
		h.Write([]byte(v.Type().String()))
		err := s.Read(v, func(part gomem.Tensor) error {
			h.Write(part.Data)
			return finiteVariable(v.Node.Name, part)
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
