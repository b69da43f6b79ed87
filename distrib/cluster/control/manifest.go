package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// Manifest says that a checkpoint is complete, and where its parts are.
type Manifest struct {
	Clock distrib.Clock `json:"clock"` // it holds all updates stamped less than this
	Epoch int64         `json:"epoch"` // in which it was made
	Files []File        `json:"files"` // by node
}

// File is the part of a checkpoint that a node has written.
type File struct {
	Node  distrib.NodeID `json:"node"`
	Path  string         `json:"path"`
	Bytes int64          `json:"bytes"`
	Sum   string         `json:"sum"` // that the writer computed, to be compared by readers
}

// Saved says that this node's part of the checkpoint at a clock is on disk. Who is the last
// of its view to say so completes the checkpoint: the manifest is written in one
// transaction, after all parts, and only if the view is still the newest. It reports whether
// the checkpoint is complete now.
func (c *Control) Saved(ctx context.Context, clock distrib.Clock, f File) (bool, error) {
	m, err := c.joined()
	if err != nil {
		return false, err
	}
	v, _ := m.now()
	f.Node = m.rec.ID
	what := fmt.Sprintf("checkpoint at clock %d", clock)
	val, err := json.Marshal(f)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	dir := c.key("part", strconv.FormatInt(v.Epoch, 10), strconv.FormatInt(int64(clock), 10), "")
	r, err := c.commit(ctx, c.during(&v), []clientv3.Op{
		clientv3.OpPut(dir+strconv.Itoa(int(f.Node)), string(val))}, nil)
	if err == nil && !r.Succeeded {
		err = errEpoch
	}
	if err != nil {
		return false, m.guard(ctx, what, err)
	}
	done, err := c.complete(ctx, &v, clock, dir)
	return done, m.guard(ctx, what, err)
}

var errEpoch = errors.New("another epoch has begun")

// during is the condition that a view is the newest.
func (c *Control) during(v *viewRecord) []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(c.key("epoch")), "=",
		strconv.FormatInt(v.Epoch, 10))}
}

// complete writes the manifest if all parts are there. Two nodes may both see that: what
// they write is the same.
func (c *Control) complete(ctx context.Context, v *viewRecord, clock distrib.Clock, dir string) (
	bool, error) {
	key := c.key("ckpt", strconv.FormatInt(int64(clock), 10))
	r, err := c.get(ctx, dir, clientv3.WithPrefix())
	if err != nil {
		return false, err
	}
	if len(r.Kvs) < len(v.Nodes) {
		return c.completed(ctx, key, v.Epoch) // by another, who has cleared the parts away
	}
	man := Manifest{Clock: clock, Epoch: v.Epoch}
	for _, kv := range r.Kvs {
		var f File
		if err := json.Unmarshal(kv.Value, &f); err != nil {
			return false, fmt.Errorf("the key %s is not gomem's: %w", kv.Key, err)
		}
		man.Files = append(man.Files, f)
	}
	slices.SortFunc(man.Files, func(a, b File) int { return cmp.Compare(a.Node, b.Node) })
	val, err := json.Marshal(&man)
	if err != nil {
		return false, err
	}
	t, err := c.commit(ctx, c.during(v), []clientv3.Op{clientv3.OpPut(key, string(val)),
		clientv3.OpDelete(dir, clientv3.WithPrefix())}, nil)
	if err == nil && !t.Succeeded {
		err = errEpoch
	}
	return err == nil, err
}

func (c *Control) completed(ctx context.Context, key string, epoch int64) (bool, error) {
	r, err := c.get(ctx, key)
	if err != nil || len(r.Kvs) == 0 {
		return false, err
	}
	m, err := manifest(r.Kvs[0].Key, r.Kvs[0].Value)
	return m.Epoch == epoch, err
}

func manifest(key, val []byte) (m Manifest, err error) {
	if err = json.Unmarshal(val, &m); err != nil {
		err = fmt.Errorf("the key %s is not gomem's: %w", key, err)
	}
	return m, err
}

// Manifests are those of all complete checkpoints, the newest last. The parts of others
// are not listed: a checkpoint is complete or it is none.
func (c *Control) Manifests(ctx context.Context) ([]Manifest, error) {
	r, err := c.get(ctx, c.key("ckpt", ""), clientv3.WithPrefix())
	if err != nil {
		return nil, c.wrap("checkpoints", err)
	}
	var all []Manifest
	for _, kv := range r.Kvs {
		m, err := manifest(kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Manifest) int { return cmp.Compare(a.Clock, b.Clock) })
	return all, nil
}

// Newest is the newest complete checkpoint; an error that is [ErrNoKey] if there is none.
func (c *Control) Newest(ctx context.Context) (Manifest, error) {
	all, err := c.Manifests(ctx)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("checkpoints: %w", ErrNoKey)
	}
	if err != nil {
		return Manifest{}, err
	}
	return all[len(all)-1], nil
}

// Forget removes the manifest of a checkpoint, which must be done before its files are.
func (c *Control) Forget(ctx context.Context, clock distrib.Clock) error {
	_, err := c.commit(ctx, nil, []clientv3.Op{
		clientv3.OpDelete(c.key("ckpt", strconv.FormatInt(int64(clock), 10)))}, nil)
	return c.wrap("forget", err)
}
