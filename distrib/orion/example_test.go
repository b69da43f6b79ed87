package orion_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/orion"
)

// apart has n workers do their parts, with a group of messages between them.
func apart(n int, part func(g *collective.Group) error) error {
	return errors.Join(collective.Together(memnet.New(n, memnet.Options{}), collective.Options{},
		part)...)
}

// stars reads a line such as "7 3 4.5": a user, a film and stars.
func stars(line string) (index []int64, x float32, err error) {
	var user, film int64
	_, err = fmt.Sscanf(line, "%d %d %g", &user, &film, &x)
	return []int64{user, film}, x, err
}

// ratings writes a file of what 40 users think of 30 films: of every third.
func ratings() (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "ratings")
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	for user := range 40 {
		for film := range 30 {
			if (user+film)%3 == 0 {
				fmt.Fprintf(&b, "%d %d %d\n", user, film, 1+user*film%5)
			}
		}
	}
	path = filepath.Join(dir, "ratings.txt")
	return path, func() { os.RemoveAll(dir) }, os.WriteFile(path, b.Bytes(), 0o600)
}

// factorise is what three workers come to in some passes over ratings, rank 8: figure 5.4 of the
// thesis. Each has copies of W and H of its own, and a loss that is added up.
func factorise(data *orion.DistArray[float32], passes int) (w, h *orion.DistArray[float32],
	losses []float64, err error) {
	const workers, rank, step = 3, 8, 0.05
	shape := data.Shape()
	loop, err := orion.Parse([]byte(fmt.Sprintf(`{"space": ["user %d", "film %d"], "arrays": [
		{"name": "W", "shape": [%[1]d, %[3]d], "bytes": 4},
		{"name": "H", "shape": [%[2]d, %[3]d], "bytes": 4}], "body": ["read W[user, :]",
		"write W[user, :]", "read H[film, :]", "write H[film, :]"]}`, shape[0], shape[1], rank)))
	if err != nil {
		return nil, nil, nil, err
	}
	choice, err := orion.Choose(loop, orion.Options{Workers: workers})
	if err != nil {
		return nil, nil, nil, err
	}
	points := data.Points()
	schedule := choice.Schedule(points)
	err = apart(workers, func(g *collective.Group) error {
		tenth := func(_ []int64, x float32) (float32, error) { return x / 10, nil }
		mine, theirs := orion.Map(orion.Randn(1, shape[0], rank), tenth),
			orion.Map(orion.Randn(2, shape[1], rank), tenth)
		if err := errors.Join(mine.Make(nil), theirs.Make(nil)); err != nil {
			return err
		}
		memory, err := orion.Hold(loop, mine, theirs)
		if err != nil {
			return err
		}
		run := &orion.Run{Schedule: schedule, Points: points}
		worker, err := run.Worker(g, memory)
		if err != nil {
			return err
		}
		worker.Sums = make([]float64, 1)
		worker.Total = func(_ int, sums []float64) { losses = append(losses, sums[0]) }
		worker.After = func(ctx context.Context, pass int) error {
			if pass < passes-1 {
				return nil
			}
			return worker.Gather(ctx)
		}
		run.Body = func(it *orion.Iteration) error {
			w, h := mine.Row(it.Index[0]), theirs.Row(it.Index[1])
			e, _ := data.At(it.Index...)
			for k, x := range w {
				e -= float32(x * h[k])
			}
			worker.Sums[0] += float64(e * e)
			for k, x := range w {
				w[k] += float32(step * float32(e*h[k]))
				h[k] += float32(step * float32(e*x))
			}
			return nil
		}
		if g.Rank() == 0 {
			w, h = mine, theirs
		}
		return worker.Run(context.Background(), passes)
	})
	return w, h, losses, err
}

// Ratings of a text file, less three stars each and in another order, are factorised by three
// workers that share nothing. What they have learnt is kept, and asked.
func ExampleDistArray() {
	path, remove, err := ratings()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer remove()
	data := orion.Map(orion.Randomized(orion.TextFile(path, stars), 1, 0, 1),
		func(_ []int64, x float32) (float32, error) { return x - 3, nil })
	if err := data.Make(nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(data.Len(), "ratings of", data.Shape())
	w, h, losses, err := factorise(data, 200)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("squared error %.0f, at the end less than 5: %v\n", losses[0], losses[199] < 5)

	var kept bytes.Buffer
	if err := h.Save(&kept); err != nil {
		fmt.Println(err)
		return
	}
	h, err = orion.Restored[float32](&kept)
	if err != nil {
		fmt.Println(err)
		return
	}
	far := 0
	for index, x := range data.Where(5, orion.Every) { // what one user has said
		guess := float32(0)
		for k, y := range w.Row(5) {
			guess += float32(y * h.Row(index[1])[k])
		}
		if math.Abs(float64(x-guess)) > 0.5 {
			far++
		}
	}
	fmt.Println("ratings of user 5 that are guessed wrong by half a star:", far)
	// Output:
	// 400 ratings of [40 30]
	// squared error 954, at the end less than 5: true
	// ratings of user 5 that are guessed wrong by half a star: 0
}

// Ratings are grouped by their film, and of each the mean is taken.
func ExampleGroupBy() {
	path, remove, err := ratings()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer remove()
	films, err := orion.GroupBy(orion.TextFile(path, stars), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	means := orion.Map(films, func(_ []int64, group []orion.Cell[float32]) (float32, error) {
		sum := float32(0)
		for _, c := range group {
			sum += c.Value
		}
		return sum / float32(len(group)), nil
	})
	if err := means.Make(func(index []int64) bool { return index[0] < 4 }); err != nil {
		fmt.Println(err)
		return
	}
	for index, mean := range means.Where(orion.Every) {
		fmt.Printf("film %d: %.2f\n", index[0], mean)
	}
	// Output:
	// film 0: 1.00
	// film 1: 2.92
	// film 2: 3.23
	// film 3: 3.07
}

// Two workers learn a logistic regression whose samples have few of many features. Which ones is
// only known from the data, so that the weights are served, and written by buffers. What a block
// reads is found out once, and then brought by one message to each server.
func ExamplePrefetch() {
	const samples, features, passes, rate = 200, 50, 20, 0.5
	of := func(sample int64) []int64 { return []int64{sample % features, sample * 7 % features} }
	label := func(sample int64) float64 { return float64(sample % 2) } // by the first feature
	nodes := []distrib.Node{{ID: 0}, {ID: 1}}
	losses := make([][]float64, 2)
	var all, ended sync.WaitGroup
	ended.Add(2)
	for rank, t := range memnet.New(2, memnet.Options{}) {
		all.Go(func() {
			defer t.Close()
			engine, err := distrib.New(distrib.Config{Transport: t, View: distrib.View{
				Self: distrib.NodeID(rank), Nodes: nodes}, Plan: distrib.Plan{
				Consistency: distrib.BSP{}}})
			if err != nil {
				fmt.Println(err)
				return
			}
			servers, ctx := engine.Worker(0).(distrib.Batched), context.Background()
			weights := &distrib.Param{Name: "w", Rows: features, Cols: 1,
				Data: make([]float32, features)}
			if err := servers.Attach(weights); err != nil {
				fmt.Println(err)
				return
			}
			own := func(yield func([]int64) bool) { // this worker's samples
				for s := int64(rank); s < samples && yield([]int64{s}); s += 2 {
				}
			}
			prefetch := &orion.Prefetch{Reads: func(index []int64, note func(int64)) {
				for _, f := range of(index[0]) {
					note(f)
				}
			}}
			buffer := orion.NewWriteBuffer(16,
				func(have, write float32) float32 { return have + write },
				func(feature int64, x float32) error {
					return servers.Push(ctx, distrib.Ref{Row: int32(feature), N: 1},
						distrib.Dense{x})
				})
			for range passes {
				if err := prefetch.Pull(ctx, servers, 0, 0, own); err != nil {
					fmt.Println(err)
				}
				loss := 0.0
				for index := range own {
					z := 0.0
					for _, f := range of(index[0]) {
						z += float64(weights.Data[f])
					}
					p := 1 / (1 + math.Exp(-z))
					y := label(index[0])
					loss -= y*math.Log(p) + (1-y)*math.Log(1-p)
					for _, f := range of(index[0]) {
						if err := buffer.Write(f, float32(rate/4*(y-p))); err != nil {
							fmt.Println(err)
						}
					}
				}
				losses[rank] = append(losses[rank], loss)
				if err := buffer.Flush(); err != nil {
					fmt.Println(err)
				}
				if _, err := servers.Tick(ctx); err != nil {
					fmt.Println(err)
				}
			}
			if err := servers.Close(); err != nil {
				fmt.Println(err)
			}
			<-engine.Done()
			ended.Done()
			ended.Wait()
		})
	}
	all.Wait()
	sum := func(pass int) float64 { return losses[0][pass] + losses[1][pass] }
	fmt.Printf("loss %.1f, at the end less than a tenth: %v\n", sum(0),
		sum(passes-1) < sum(0)/10)
	fmt.Println(slices.IndexFunc(losses[0], math.IsNaN))
	// Output:
	// loss 138.6, at the end less than a tenth: true
	// -1
}
