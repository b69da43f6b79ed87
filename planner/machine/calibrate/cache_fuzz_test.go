package calibrate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/planner/machine"
)

// measured is a record as a machine keeps it.
func measured() record {
	rates := machine.Rates{FLOPs: 1e11, Bytes: 1e10, Launch: 500}
	return record{When: time.Unix(1e9, 0).UTC(), Gap: -3.5, Shared: 0.5,
		Basics: trust{Rounds: 5, Noise: 1.25},
		Profile: machine.Profile{Name: "local", ElementBytes: 4, In: 1e9, Out: 1e9, DiskRead: 1e9,
			DiskWrite: 1e9, Device: rates, Host: rates},
		Samples: map[string]sample{"add f32[8]": {Op: "add", FLOPs: 8, Bytes: 96, Nanos: 40e3,
			trust: trust{Rounds: 4, Noise: 2, Doubted: true}}}}
}

// FuzzCache: a cache that is taken says prices that a file of prices may say, and nothing that
// later measuring could not be added to; it is kept as what is loaded as the same; and it takes
// memory by its size. Any other is as none.
func FuzzCache(f *testing.F) {
	c := cache{key: "this"}
	r := measured()
	r.Key = c.key
	text, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	whole := strings.TrimSuffix(string(text), "}")
	for _, more := range []string{`"samples":null`, `"gap_ns":-1e300`, `"gap_ns":1e300`,
		`"basics":{"rounds":9223372036854775807,"noise":1}`, `"basics":{"rounds":-1,"noise":-1}`,
		`"link":{"in_bytes_per_second":-1}`, `"profile":{}`, `"profile":{"name":"\n"}`, `"key":"x"`,
		`"samples":{"a":{"op":"add","flops":9000000000000000000,"bytes":1,"ns":1}}`,
		`"samples":{"a":{"op":"a\nb","flops":1,"bytes":1,"ns":1}}`, `"when":"no time"`,
		`"samples":{"a":{"op":"add","flops":1,"bytes":1,"ns":1,"rounds":-9}}`, `"more":1`,
		`"samples":{"a":{"op":"add","flops":0,"bytes":0,"ns":1e-300}}`} {
		f.Add([]byte(whole + "," + more + "}"))
	}
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := cache{key: "this", path: filepath.Join(t.TempDir(), "machine.json")}
		if err := os.WriteFile(c.path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, ok := c.load()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+500*uint64(len(text)) {
			t.Errorf("%d bytes take %d of memory", len(text), took)
		}
		if !ok {
			return
		}
		local := (&Machine{known: r}).Local()
		if err := local.Profile.Check(); err != nil {
			t.Error(err)
		}
		for signature, d := range local.Measured {
			if d < 0 || d > machine.Longest {
				t.Errorf("%q takes %v", signature, d)
			}
		}
		later := measured()
		if sum := r.with(later); !sum.sound() || sum.Basics.Rounds < later.Basics.Rounds {
			t.Errorf("with what is measured later: %+v", sum)
		}
		if err := c.store(r); err != nil {
			t.Fatal(err)
		}
		if same, ok := c.load(); !ok || !reflect.DeepEqual(r, same) {
			t.Errorf("%+v is kept as %+v, %v", r, same, ok)
		}
	})
}
