# Pure Python on Jython: classes, generators, closures, exceptions, string work. Prints checksums of results.
import re
import sys


class Shape(object):
    def __init__(self, name, sides):
        self.name, self.sides = name, sides

    def area(self):
        raise NotImplementedError(self.name)

    def __cmp__(self, other):
        return cmp((self.sides, self.name), (other.sides, other.name))


class Square(Shape):
    def __init__(self, edge):
        Shape.__init__(self, 'square%d' % edge, 4)
        self.edge = edge

    def area(self):
        return self.edge * self.edge


def sieve(n):
    flags = [True] * (n + 1)
    for i in xrange(2, n + 1):
        if flags[i]:
            yield i
            for j in xrange(i * i, n + 1, i):
                flags[j] = False


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def words(text):
    counts = {}
    for w in re.findall(r'[a-z]+', text.lower()):
        counts[w] = counts.get(w, 0) + 1
    return sorted(counts.items(), key=lambda p: (-p[1], p[0]))


rounds = int(sys.argv[1])
checksum = 0
for r in range(rounds):
    checksum = (checksum * 31 + sum(sieve(2000 + r))) % 1000003
    checksum = (checksum * 31 + max(collatz(n) for n in xrange(1, 600))) % 1000003
    shapes = sorted([Square((i * 7919) % 101) for i in range(200)] + [Shape('s%d' % i, i % 9) for i in range(50)])
    total = 0
    for s in shapes:
        try:
            total += s.area()
        except NotImplementedError as e:
            total += len(str(e))
        finally:
            total ^= 1
    checksum = (checksum * 31 + total) % 1000003
    checksum = (checksum * 31 + len(repr(words('the path that the other path takes is the hot path %d ' % r * 30)))) % 1000003
print 'jython: checksum %d' % checksum
sys.stderr.write('rounds %d\n' % rounds)
sys.exit(checksum % 5)
