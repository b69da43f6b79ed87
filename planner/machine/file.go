package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/gomem/gomem/internal/legible"
)

// Parse reads a profile as JSON, as [Profile.WriteJSON] writes it. A field that no
// profile has, or a number that makes no sense, is an error that names the field.
func Parse(data []byte) (*Profile, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	p := &Profile{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("profile: %.200s", err) // it may have all of a name
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("profile: there is more after it")
	}
	return p, p.Check()
}

// WriteJSON writes the profile so that [Parse] reads it.
func (p *Profile) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

// The rates that make sense, per second: from less than any machine's to more.
const minRate, maxRate = 1e3, 1e21

// maxLatency is a second, in nanoseconds.
const maxLatency = 1e9

// maxName is how many characters a name has at most.
const maxName = 40

// maxAbout is the same of what a profile is said to be of.
const maxAbout = 200

// printed reports whether a text is so short, on one line, and gives a terminal no orders: it
// is shown wherever times are.
func printed(text string, most int) bool {
	return utf8.RuneCountInString(text) <= most && legible.Is(text)
}

// Check reports a field whose value makes no sense.
func (p *Profile) Check() error {
	if p.Name == "" {
		return errors.New(`profile: name: want one that is not ""`)
	}
	for _, text := range []struct {
		of, is string
		most   int
	}{{"name", p.Name, maxName}, {"about", p.About, maxAbout}} {
		if !printed(text.is, text.most) {
			return fmt.Errorf("profile: %s: %.*q: want %d characters at most, all of which can be "+
				"printed", text.of, maxName, text.is, text.most)
		}
	}
	fields := []field{
		{"in_bytes_per_second", p.In, minRate, maxRate},
		{"out_bytes_per_second", p.Out, minRate, maxRate},
		{"copy_latency_ns", p.Latency, 0, maxLatency},
		{"disk_read_bytes_per_second", p.DiskRead, minRate, maxRate},
		{"disk_write_bytes_per_second", p.DiskWrite, minRate, maxRate},
		{"element_bytes", float64(p.ElementBytes), 1, 8},
	}
	if p.Network != 0 {
		fields = append(fields, field{"network_bytes_per_second", p.Network, minRate, maxRate})
	}
	if p.Peer != 0 {
		fields = append(fields, field{"peer_bytes_per_second", p.Peer, minRate, maxRate})
	}
	for _, f := range []field{{"half_flops_per_second", p.HalfFLOPs, minRate, maxRate},
		{"tf32_flops_per_second", p.TF32FLOPs, minRate, maxRate}} {
		if f.value != 0 {
			fields = append(fields, f)
		}
	}
	fields = append(p.Device.fields("device"), fields...)
	fields = append(p.Host.fields("host"), fields...)
	for _, model := range slices.Sorted(maps.Keys(p.Achieved)) {
		fields = append(fields, field{"achieved_flops_per_second." + legible.Cut(model, maxName),
			p.Achieved[model],
			minRate, maxRate})
	}
	for _, op := range slices.Sorted(maps.Keys(p.Operations)) {
		fields = append(fields, p.Operations[op].fields("operations."+legible.Cut(op, maxName))...)
	}
	for _, f := range fields {
		if !(f.value >= f.least && f.value <= f.most) { // NaN too
			return fmt.Errorf("profile %s: %s is %v: want a number from %v to %v", p.Name, f.name,
				f.value, f.least, f.most)
		}
	}
	return nil
}

// field is a number of a profile and what it may be.
type field struct {
	name               string
	value, least, most float64
}

// Within are the nearest rates that a file may have.
func (r Rates) Within() Rates {
	return Rates{min(max(r.FLOPs, minRate), maxRate), min(max(r.Bytes, minRate), maxRate),
		min(max(r.Launch, 0), maxLatency)}
}

func (r Rates) fields(of string) []field {
	return []field{
		{of + ".flops_per_second", r.FLOPs, minRate, maxRate},
		{of + ".bytes_per_second", r.Bytes, minRate, maxRate},
		{of + ".launch_ns", r.Launch, 0, maxLatency},
	}
}
