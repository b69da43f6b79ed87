package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gomem/gomem/distrib/orion"
	"github.com/gomem/gomem/internal/regular"
)

// loops are the examples of loops, in the form that files have.
var loops = map[string]string{
	"mf": `
name: mf
space: [user 600, item 900]
arrays:
- {name: W, shape: [600, 40]}
- {name: H, shape: [900, 40]}
body: ["read W[user, :]", "write W[user, :]", "read H[item, :]", "write H[item, :]"]
`,
	"lda": `
name: lda
space: [document 500, word 800]
arrays:
- {name: OfDocument, shape: [500, 20]}
- {name: OfWord, shape: [800, 20]}
- {name: OfAll, shape: [20]}
body:
- read OfDocument[document, :]
- write OfDocument[document, :]
- read OfWord[word, :]
- write OfWord[word, :]
- read OfAll[:]
- buffer OfAll[:]
`,
	"gbt": `
name: gbt
space: [sample 10000, feature 20]
arrays:
- {name: Bin, shape: [10000, 20], bytes: 1}
- {name: Derivatives, shape: [10000, 2]}
- {name: Leaf, shape: [10000]}
- {name: Histogram, shape: [20, 255, 3], bytes: 8}
body:
- read Bin[sample, feature]
- read Derivatives[sample, :]
- read Leaf[sample]
- buffer Histogram[feature, ?, :]
`,
	"lr": `
name: lr
space: [sample 10000]
arrays:
- {name: Weights, shape: [5000]}
body: ["read Weights[?]", "buffer Weights[?]"]
`,
	"stencil": `
name: stencil
ordered: true
space: [row 64, column 96]
arrays:
- {name: A, shape: [64, 96]}
body:
- read A[row-1, column]
- read A[row+1, column]
- read A[row, column-1]
- read A[row, column+1]
- write A[row, column]
`,
	"skewed": `
name: skewed
ordered: true
space: [row 64, column 96]
arrays:
- {name: A, shape: [64, 96]}
body:
- read A[row-1, column-1]
- read A[row-1, column]
- read A[row-1, column+1]
- read A[row, column-1]
- write A[row, column]
`,
}

// loopNames are the examples' names, as errors list them.
func loopNames() string { return strings.Join(slices.Sorted(maps.Keys(loops)), ", ") }

// maxLoop is how long the text of a loop may be, in bytes.
const maxLoop = 1 << 20

// readLoop is an example, or the loop of a file in YAML or JSON.
func readLoop(name string) (*orion.Loop, error) {
	text, known := loops[name]
	if !known {
		if filepath.Ext(name) == "" && !strings.ContainsRune(name, filepath.Separator) {
			return nil, usagef("--loop %.40q: want %s, or a file such as loop.yaml", name,
				loopNames())
		}
		data, err := regular.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	if len(text) > maxLoop || documents(text) > 1 {
		return nil, fmt.Errorf("%s: want one loop, of less than a MiB", name)
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s is neither YAML nor JSON: %w", name, err)
	}
	l, err := orion.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.Name = cmp.Or(l.Name, filepath.Base(name))
	return l, nil
}

// maxDrawn is how many iterations are drawn at most.
const maxDrawn = 1_000_000

// drawPoints are n different iterations of a loop in order, more of them at small indices, as those
// of data often are.
func drawPoints(l *orion.Loop, n int) ([][]int64, error) {
	space := 1.0
	for _, d := range l.Space {
		space *= float64(d.Size)
	}
	if n > maxDrawn || float64(2*n) > space {
		return nil, errors.New("want a million at most, and no more than half of the loop's space")
	}
	rng := rand.New(rand.NewPCG(1, 0))
	seen := map[string]bool{}
	var points [][]int64
	for len(points) < n {
		p := make([]int64, len(l.Space))
		for k, d := range l.Space {
			u := rng.Float64()
			p[k] = int64(float64(u*(1+u)) / 2 * float64(d.Size))
		}
		if key := fmt.Sprint(p); !seen[key] {
			seen[key] = true
			points = append(points, p)
		}
	}
	slices.SortFunc(points, slices.Compare)
	return points, nil
}
