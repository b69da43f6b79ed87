//go:build linux && amd64 && !nocuda

package driver

import (
	"errors"
	"unsafe"
)

// Graph is work of a stream that was captured, and is given to it again by one call.
type Graph struct {
	gpu    *GPU
	handle uintptr
}

// Capture has what a function gives the stream made a graph, rather than done: kernels, products,
// convolutions and fills, each of which was done before, so that nothing must be loaded. The
// function may wait for nothing and take no memory. After an error nothing was done, and the stream
// is as before. A graph takes memory of the GPU, which the driver does not tell of.
func (s *Stream) Capture(give func() error) (g *Graph, err error) {
	// threads that pin memory meanwhile are none of this one's business
	if err := s.gpu.do(cuStreamBeginCapture, s.handle, threadLocal); err != nil {
		return nil, err
	}
	err = give()
	var made uintptr
	ended := s.gpu.do(cuStreamEndCapture, s.handle, uintptr(unsafe.Pointer(&made)))
	if made != 0 {
		defer func() { err = errors.Join(err, s.gpu.do(cuGraphDestroy, made)) }()
	}
	if err != nil {
		return nil, err // which is why the end may be an error, too
	}
	if ended != nil {
		return nil, ended
	}
	g = &Graph{gpu: s.gpu}
	if err := s.gpu.do(cuGraphInstantiate, uintptr(unsafe.Pointer(&g.handle)), made,
		0); err != nil {
		return nil, err
	}
	// now, so that too little memory is an error here rather than in a step
	if err := s.gpu.do(cuGraphUpload, g.handle, s.handle); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Replay gives the stream a graph's work.
func (s *Stream) Replay(g *Graph) error { return s.gpu.do(cuGraphLaunch, g.handle, s.handle) }

// Close ends the graph. What was given of it is done nevertheless.
func (g *Graph) Close() error { return g.gpu.do(cuGraphExecDestroy, g.handle) }
