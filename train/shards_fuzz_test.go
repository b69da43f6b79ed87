package train

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
)

// smallest is a config.json of a network of a few hundred numbers.
const smallest = `{"model_type":"gpt2","vocab_size":4,"n_positions":4,"n_embd":2,"n_layer":1,` +
	`"n_head":1,"n_inner":2}`

// smallestTensors are its tensors, by name, as the header of a file says them from an offset on;
// and how many bytes they have.
func smallestTensors(f *testing.F, keep func(i int, name string) bool, from int) (string, int) {
	f.Helper()
	c, err := models.ParsePublished([]byte(smallest))
	if err != nil {
		f.Fatal(err)
	}
	m, err := models.GPT(c.GPTConfig)
	if err != nil {
		f.Fatal(err)
	}
	var text []string
	i := 0
	for _, n := range m.Graph.Variables() {
		name := c.PublicName(n.Name)
		if n.State || !keep(i, name) {
			i++
			continue
		}
		i++
		to := from + int(n.Out[0].Bytes())
		sizes, _ := json.Marshal(n.Out[0].Sizes())
		text = append(text, fmt.Sprintf(`%q:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`,
			name, sizes, from, to))
		from = to
	}
	return strings.Join(text, ","), from
}

// shardOf is a file of tensors: a header and so many bytes.
func shardOf(header string, data int) []byte {
	text := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(text, header...), make([]byte, data)...)
}

// addShards adds what is whole, and much that is not.
func addShards(f *testing.F) {
	even := func(i int, _ string) bool { return i%2 == 0 }
	one, n := smallestTensors(f, even, 0)
	other, m := smallestTensors(f, func(i int, name string) bool { return !even(i, name) }, 0)
	var all map[string]any
	if err := json.Unmarshal([]byte("{"+one+","+other+"}"), &all); err != nil {
		f.Fatal(err)
	}
	files := map[string]string{}
	for name := range all {
		files[name] = "b"
		if strings.Contains(one, `"`+name+`"`) {
			files[name] = "a"
		}
	}
	whole, err := json.Marshal(map[string]any{"weight_map": files})
	if err != nil {
		f.Fatal(err)
	}
	a, b := shardOf("{"+one+"}", n), shardOf("{"+other+"}", m)
	f.Add(whole, a, b)
	if p, err := OpenPublic(putShards(f, whole, a, b)); err != nil || len(p.tensors) != len(all) {
		f.Fatal("what is whole: ", err)
	}
	index := func(more string) []byte {
		return []byte(strings.TrimSuffix(string(whole), "}}") + "," + more + "}}")
	}
	for _, more := range []string{`"x":"../a"`, `"x":"/etc/passwd"`, `"x":"a/../a"`, `"x":"c"`,
		`"wte.weight":"b"`, `"wte.weight":"a"`, `"x\n":"a"`, `"x":""`, `"x":".."`, `"x":"a\u0000"`,
		`"x":null`, `"x":"config.json"`, `"x":"model.safetensors.index.json"`} {
		f.Add(index(more), a, b)
	}
	f.Add(append(whole[:len(whole)-1:len(whole)-1], `,"weight_map":{"x":"b"}}`...), a, b)
	f.Add(whole, a, a)
	f.Add(whole, a, shardOf("{"+other+"}", m-1))
	f.Add(whole, a, shardOf("{"+other+"}", m+1))
	f.Add(whole, a, shardOf("{}", 0))
	both := fmt.Sprintf(`"x\n":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, n, n+4)
	f.Add(whole, shardOf("{"+one+","+both+"}", n+4), shardOf("{"+other+"}", m))
	own := func(name string, header string, n int) []byte {
		return shardOf(fmt.Sprintf(`{%s,%s:{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}}`,
			header, name, n, n+4), n+4)
	}
	long := `"` + strings.Repeat("\\n", 3000) + `"`
	f.Add(whole, own(`"y\n"`, one, n), own(`"y\n"`, other, m))
	f.Add(whole, own(long, one, n), own(long, other, m))
	f.Add(whole, own(`"h.0.y\u001b[31m"`, one, n), b)
	f.Add(whole, own(`"h.0.`+long[1:], one, n), b)
	f.Add(whole, own(`"h.1`+strings.Repeat("0", 3000)+`.ln_1.weight"`, one, n), b)
	f.Add(whole, a, own(`"transformer.wte.weight"`, other, m))
	huge := `"wte.weight":{"dtype":"F32","shape":[1000000000,1000000],"data_offsets":[0,8]}`
	f.Add([]byte(`{"weight_map":{"wte.weight":"a"}}`), shardOf("{"+huge+"}", 8), b)
	strange := `"\u001b[31m":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}`
	f.Add([]byte(`{"weight_map":{"\u001b[31m":"a","h.0.\u0085":"b"}}`),
		shardOf("{"+strange+"}", 8), b)
	twice := `"wte.weight":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]},` +
		`"transformer.wte.weight":{"dtype":"F32","shape":[4,2],"data_offsets":[32,64]}`
	f.Add([]byte(`{"weight_map":{"wte.weight":"a"}}`), shardOf("{"+twice+"}", 64), b)
	f.Add([]byte(`{"weight_map":{"x":"a"}}`), shardOf(strings.Repeat("[", 5000), 0), b)
}

// FuzzShards: of a checkpoint in several files every tensor is in the file that the index says, all
// files are beside it, and every byte that is promised is there. Else the error is an
// *ErrCheckpoint of one line that names the file. What is read takes memory by the files' size.
func FuzzShards(f *testing.F) {
	addShards(f)
	f.Fuzz(func(t *testing.T, index, a, b []byte) {
		dir := putShards(t, index, a, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := OpenPublic(dir)
		runtime.ReadMemStats(&after)
		size := uint64(len(index) + len(a) + len(b))
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20+1000*size {
			t.Errorf("%d bytes take %d of memory", size, took)
		}
		if err != nil {
			bad, ok := errors.AsType[*ErrCheckpoint](err)
			if !ok || bad.Path != dir && filepath.Dir(bad.Path) != dir {
				t.Fatalf("%v", err)
			}
			oneLine(t, err)
			return
		}
		var said struct {
			Files map[string]string `json:"weight_map"`
		}
		if err := json.Unmarshal(index, &said); err != nil {
			t.Fatal(err)
		}
		for name := range said.Files {
			n := strings.Count(string(index), `"`+name+`":`)
			if n > 1 && strings.Count(string(index), "{") == 2 {
				t.Errorf("%s is %d times in the index", name, n)
			}
		}
		for _, tensor := range p.tensors {
			if file := said.Files[tensor.Name]; file != "" && file != filepath.Base(tensor.file) {
				t.Errorf("%s is read from %s, the index says %s", tensor.Name, tensor.file, file)
			}
			readWhole(t, dir, tensor)
		}
	})
}

// putShards writes a checkpoint of two files.
func putShards(t testing.TB, index, a, b []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string][]byte{publicIndex: index, "a": a, "b": b,
		publicConfig: []byte(smallest)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readWhole reads a tensor of a file in a directory.
func readWhole(t *testing.T, dir string, tensor publicTensor) {
	t.Helper()
	file, err := safetensors.Open(tensor.file)
	if err != nil || filepath.Dir(tensor.file) != dir {
		t.Fatal(tensor.file, err)
	}
	defer closeRead(file)
	if x, err := file.Get(tensor.Name); err != nil || int64(len(x.Data)) != tensor.Type.Bytes() ||
		!slices.Equal(x.Type.Sizes(), tensor.Type.Sizes()) {
		t.Errorf("%s: %d bytes, %v", tensor.Name, len(x.Data), err)
	}
}
