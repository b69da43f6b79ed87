package candidates

import "github.com/gomem/gomem/plan/space"

// Forecast is what a policy guesses of a plan before anything is lowered, beside
// what it comes to.
type Forecast struct {
	Estimate     int64 // the device's peak as a pass guesses it; 0 if none does
	Device, Host int64 // the peaks of the plan
}

// Predict is the forecast of Grappler that is told the device's budget of the options, for the
// first target.
func (s *Search) Predict() (Forecast, error) {
	w := tunings(s.Options)[0]
	w.Told = s.Options.DeviceBytes
	p, program, err := s.each[0].sketches.plan(s.ctx, w)
	if err != nil {
		return Forecast{}, err
	}
	return Forecast{program.Estimate, p.Spaces[space.Device].Bytes,
		p.Spaces[space.Host].Bytes}, nil
}
