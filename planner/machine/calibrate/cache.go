package calibrate

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/planner/machine"
)

// version numbers what kernels are like: what was measured with others is of no use.
// Raise it when their speed changes.
const version = 2

// record is what a cache keeps.
type record struct {
	Key     string            `json:"key"`
	When    time.Time         `json:"when"`
	Profile machine.Profile   `json:"profile"`
	Gap     float64           `json:"gap_ns"` // of an operation among others
	Shared  float64           `json:"shared"` // see machine.Local; 0 of a GPU
	Link    Link              `json:"link"`   // of a GPU
	Samples map[string]sample `json:"samples"`
	Basics  trust             `json:"basics"` // in the profile, the gap and the link

	Disks map[string]DiskRates `json:"disks,omitempty"` // by directory
}

// cache is the file for this machine.
type cache struct {
	key, path string
}

// newCache is the cache of this machine's processor.
func newCache(o Options) cache {
	return cacheFor(o, fmt.Sprintf("%s, %s/%s, %s, %d threads, kernels %d", Processor(),
		runtime.GOOS, runtime.GOARCH, kernel.InstructionSet(), threads(o), version))
}

// cacheFor names the file of a machine; its path is "" if there is no directory for it.
func cacheFor(o Options, key string) cache {
	c := cache{key: key}
	dir := o.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return c
		}
		dir = filepath.Join(user, "gomem")
	}
	c.path = filepath.Join(dir, fmt.Sprintf("machine-%.8x.json", sha256.Sum256([]byte(c.key))))
	return c
}

func threads(o Options) int {
	if o.Threads == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return o.Threads
}

// load is what the file has, if it is whole and of this machine.
func (c cache) load() (record, bool) {
	var r record
	data, err := regular.ReadFile(c.path)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return record{}, false
	}
	return r, r.Key == c.key && r.sound()
}

// sound reports whether a record could have been measured. What a file says must not become prices
// by which times are negative or endless.
func (r *record) sound() bool {
	if r.Profile.Check() != nil || r.Samples == nil || !r.Basics.sound() || !r.Link.sound() ||
		math.Abs(r.Gap) > float64(machine.Longest) || !(r.Shared >= 0 && r.Shared <= mostShared) {
		return false
	}
	for _, d := range r.Disks {
		if !d.sound() {
			return false
		}
	}
	for _, s := range r.Samples {
		if !(s.Nanos > 0 && s.Nanos <= float64(machine.Longest)) || s.FLOPs < 0 || s.Bytes < 0 ||
			!s.trust.sound() {
			return false
		}
	}
	return true
}

// store writes the file as a whole or not at all.
func (c cache) store(r record) error {
	if c.path == "" {
		return errors.New("the user has no cache directory")
	}
	r.Key = c.key
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".machine-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Processor is the processor's name, where the system tells.
func Processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "unknown processor"
}
