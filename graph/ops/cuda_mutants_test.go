//go:build linux && amd64 && !nocuda

package ops

import (
	encoding "encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

// mutant is a change of a line of the kernels.
type mutant struct {
	kind, line string // with the line before
	samples    []int  // that run it
}

// change is how lines become mutants; %d is the mutant's number.
type change struct {
	kind string
	find *regexp.Regexp
	to   string
}

var changes = []change{
	{"no barrier", regexp.MustCompile(`(__sync(threads|warp)\(\);)`), `if (!mutated(%d)) $1`},
	{"< is <=", regexp.MustCompile(` < `), ` < mutated(%d) + `},
	{"no check", regexp.MustCompile(`\bif \(([^()]*)\)`), `if (mutated(%d) || ($1))`},
	{"+ is -", regexp.MustCompile(` \+ `), ` + (1 - 2 * mutated(%d)) * `},
	{"the next element", regexp.MustCompile(`(\w)\[([b-z]\w*)`), `$1[mutated(%d) + $2`},
	{"twice the stride", regexp.MustCompile(` \* `), ` * (1 + mutated(%d)) * `},
	{"operands swapped", regexp.MustCompile(`\bfmaf\(`), `swapped(%d, `},
	{"> is >=", regexp.MustCompile(` > `), ` > -mutated(%d) + `},
	{"<= is <", regexp.MustCompile(` <= `), ` <= -mutated(%d) + `},
	{">= is >", regexp.MustCompile(` >= `), ` >= mutated(%d) + `},
	{"equal to one more", regexp.MustCompile(` == `), ` == mutated(%d) + `},
	{"half the condition", regexp.MustCompile(`([(] *|return |= )(\w+ [<>=!]+ \w+) && `),
		`$1($2 || mutated(%d)) && `},
	{"- is +", regexp.MustCompile(` - `), ` - (1 - 2 * mutated(%d)) * `},
	{"added is taken", regexp.MustCompile(` \+= `), ` += (1 - 2 * mutated(%d)) * `},
	{"half of it", regexp.MustCompile(` / `), ` / (1 + mutated(%d)) / `},
	{"one bit more", regexp.MustCompile(` (<<|>>) `), ` $1 mutated(%d) + `},
	{"from one", regexp.MustCompile(` = 0([,;)])`), ` = mutated(%d)$1`},
	{"not is so", regexp.MustCompile(`!(\w)`), `(mutated(%d) != 0) ^ !$1`},
	{"nothing is stored", regexp.MustCompile(`^(\s*)(\w+\[[^=;]*\] [-+*]?= [^;]*;)$`),
		`$1{ if (!mutated(%d)) $2 }`},
	{"the other way", regexp.MustCompile(` \? `), ` && !mutated(%d) ? `},
}

// unchanged are lines that declare, or are no code of a function.
var unchanged = regexp.MustCompile(`^\s*//|#|__shared__|template|enum|constexpr|struct|extern|` +
	`operator|const int|\\$|\[ahead\]|\[[A-Z]+ [+] |\[\w+ [?] |[*]\w+ = 0|<!|^\S`)

const mutating = `
static volatile int mutant = -1;
static bool mutant_ran[MUTANTS];
__attribute__((no_sanitize("thread"))) static int mutated(int k) {
	mutant_ran[k] = true;
	return k == mutant;
}
static inline float swapped(int k, float a, float b, float c) {
	return mutated(k) ? fmaf(a, c, b) : fmaf(a, b, c);
}
`

// mutated is the text of kernels with so many mutants, drawn by kind, each of a line of its own,
// from one that begins with a text to before one that begins with another; "" is the first, or the
// last.
func mutated(text, from, to string, count int, rng *rand.Rand) (string, []mutant) {
	lines := strings.Split(text, "\n")
	first := max(1, starting(lines, from))
	last := len(lines)
	if to != "" {
		last = starting(lines, to)
	}
	var list []mutant
	taken := map[int]bool{}
	for tries := 0; len(list) < count && tries < 1000*count; tries++ {
		c := changes[tries%len(changes)]
		i := first + rng.IntN(last-first)
		if taken[i] || unchanged.MatchString(lines[i]) {
			continue
		}
		sites := c.find.FindAllStringIndex(lines[i], -1)
		if sites == nil {
			continue
		}
		at := sites[rng.IntN(len(sites))]
		list = append(list, mutant{kind: c.kind,
			line: strings.TrimSpace(lines[i-1]) + "\n\t" + strings.TrimSpace(lines[i])})
		rest := lines[i][at[0]:]
		once := c.find.ReplaceAllString(rest[:at[1]-at[0]], fmt.Sprintf(c.to, len(list)-1))
		lines[i] = lines[i][:at[0]] + once + rest[at[1]-at[0]:]
		taken[i] = true
	}
	head := fmt.Sprintf("#define MUTANTS %d%s", len(list), mutating)
	return head + strings.Join(lines, "\n"), list
}

// starting is the first line that begins with a text.
func starting(lines []string, with string) int {
	return slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, with) })
}

// broken is what a test panics with once it has failed.
type broken struct{ text string }

// trial is a test that ends where it fails.
type trial struct{ testing.TB }

func (trial) Helper()                      {}
func (trial) Fatal(args ...any)            { panic(broken{fmt.Sprint(args...)}) }
func (trial) Fatalf(f string, args ...any) { panic(broken{fmt.Sprintf(f, args...)}) }

// failure is why a sample's commands do not compute what the host does; none if they do.
func (s Sample) failure(t *testing.T, h *host, seed uint64, want int) (why string) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case broken:
			why = e.text
		default:
			panic(e)
		}
	}()
	in := s.operands(seed)
	if o, ok := s.Op.(inBF16); ok {
		in, _ = halved(Sample{Op: o.Op, In: inF32(s.In), Fill: s.Fill}, s, seed)
	}
	for order := range want {
		h.orders = uint32(order)
		want, got := s.compute(t, in, nil), s.onCUDA(trial{t}, h, in, memory{poison: 0xff}, -1)
		if o, ok := s.Op.(inBF16); ok {
			for k, w := range want {
				nearBF16(trial{t}, k, w, got[k], roomBF16(o.Op))
			}
			continue
		}
		s.near(trial{t}, want, got)
	}
	return ""
}

// set makes the host another mutant, -1 for none, and returns those whose lines ran before.
func (h *host) set(mutant int) (ran []int, err error) {
	message := encoding.LittleEndian.AppendUint32([]byte{'x'}, uint32(int32(mutant)))
	answer, err := h.ask(message)
	for word := range strings.FieldsSeq(answer) {
		if n, err := strconv.Atoi(word); err == nil {
			ran = append(ran, n)
		}
	}
	return ran, err
}

// mutantSamples are those that mutants are run by: all, the sizes at which blocks and parts count,
// and elementwise operations of numbers at which functions are not smooth.
func mutantSamples() []Sample {
	list := append(Samples(), sizedSamples()...)
	x := specials()
	n := len(x)
	seen := map[graph.Op]bool{}
	for _, s := range Samples() {
		if _, ok := s.Op.(pointwise); !ok || seen[s.Op] {
			continue
		}
		if d, shared := s.Op.(dropout); shared && d.Shared != 0 {
			continue
		}
		if _, windowed := s.Op.(noiseWindow); windowed || !allF32(s.In) {
			continue
		}
		seen[s.Op] = true
		t := Sample{Op: s.Op, Fill: fills{}}
		for operand := range s.In {
			t.In = append(t.In, tensor.Of(graph.F32, n*n))
			t.Fill[operand] = func(_ *rand.Rand, to any) {
				for k := range to.([]float32) {
					to.([]float32)[k] = x[[2]int{k % n, k / n}[operand]]
				}
			}
		}
		list = append(list, t)
	}
	return list
}

// allF32 reports whether operands are one or two of single precision.
func allF32(in []graph.Type) bool {
	return len(in) <= 2 && !slices.ContainsFunc(in, func(t graph.Type) bool {
		return t.DType != graph.F32
	})
}

// mutants is how many there are.
const mutants = 500

// TestMutants: of kernels that are changed at a place, most are found wrong by the samples of
// operations that run it. Those that are not are listed.
func TestMutants(t *testing.T) {
	longtest.Only(t, "TestRaces")
	if !watched {
		t.Skip("EMU_RACES is not set")
	}
	text, list := mutated(cuda.Source(), "", "", mutants, rand.New(rand.NewPCG(34, 1)))
	findMutants(t, text, list, mutantSamples())
}

// TestMutantsOfProducts: of the kernels by tensor cores, which are a small part of all, as many are
// found by the samples of operations in bfloat16. Accesses to memory need not be watched.
func TestMutantsOfProducts(t *testing.T) {
	longtest.Only(t, "TestRaces")
	text, list := mutated(cuda.Source(), "// Products of matrices of bfloat16 by tensor cores",
		"// Rows of few bits, as package quant has", mutants/5, rand.New(rand.NewPCG(35, 1)))
	rng := rand.New(rand.NewPCG(1, 2))
	var all []Sample
	for _, plain := range slices.Concat(Samples(), sizedSamples()) {
		form := formBF16CUDA(plain.Op)
		if _, is := plain.Op.(rotary); formOfAttention(plain.Op) != "" && !is ||
			byTensorCores(plain.Op) {
			all = append(all, plain, inForm(t, plain, form, rng))
		}
	}
	findMutants(t, text, list, all)
}

// findMutants runs samples by mutants of a text, and logs those that none finds.
func findMutants(t *testing.T, text string, list []mutant, all []Sample) {
	start := func() *host {
		h, err := startHost(text)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := start()
	for i, s := range all {
		if !cuda.Supports(s.Op) {
			continue
		}
		if why := s.failure(t, h, 1, 1); why != "" {
			t.Fatalf("%s: %s", s.name(), why)
		}
		ran, err := h.set(-1)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ran {
			list[m].samples = append(list[m].samples, i)
		}
	}
	found, met, reasons := 0, 0, map[string]int{}
	for k, m := range list {
		why := ""
		if _, err := h.set(k); err != nil {
			t.Fatal(err)
		}
		for _, i := range m.samples {
			if why = all[i].failure(t, h, 1, 2); why != "" {
				break
			}
		}
		if _, err := h.set(-1); err != nil { // it ended the process
			h = start()
		}
		if len(m.samples) > 0 {
			met++
		}
		if why == "" {
			t.Logf("%d samples do not find: %s: %s", len(m.samples), m.kind, m.line)
			continue
		}
		found++
		reasons[reason(why)]++
	}
	t.Logf("%d of %d mutants are found, of %d that run: %v", found, len(list), met, reasons)
	if found < len(list)*7/10 {
		t.Errorf("only %d of %d mutants are found", found, len(list))
	}
}

// reason is the kind of a failure.
func reason(why string) string {
	for _, kind := range []string{"race in shared memory", "race in global memory",
		"nobody wrote this", "outside of operands", "outside of an array", "misaligned",
		"deadlock", "different barriers", "ended the process"} {
		if strings.Contains(why, kind) {
			return kind
		}
	}
	return "other results"
}
