// Groovy code, compiled while it loads: dynamic dispatch through invokedynamic, closures, ranges, switch on types, builders of strings.
def collatz(n) { int steps = 0; while (n != 1) { n = n % 2 == 0 ? n.intdiv(2) : 3 * n + 1; steps++ }; steps }

def kind(x) {
    switch (x) {
        case Integer: return 'int'
        case ~/a.*/: return 'a-word'
        case ['b', 'c']: return 'listed'
        case { it instanceof List && it.size() > 2 }: return 'long list'
        default: return 'other'
    }
}

int rounds = args[0] as int
long sum = 0
for (r in 0..<rounds) {
    sum = (sum * 31 + (1..300).collect { collatz(it) }.max()) % 1000003
    def kinds = [1, 'abc', 'b', [1, 2, 3], 2.5, null].collectMany { [kind(it)] * (r + 1) }.countBy { it }
    sum = (sum * 31 + kinds.toString().hashCode()) % 1000003
    try {
        sum += [1, 2, 3].get(3)
    } catch (IndexOutOfBoundsException e) {
        sum += 7
    } finally {
        sum = (sum * 31 + (0..50).findAll { it % 3 }.inject(0) { a, b -> a * 3 + b } % 1009) % 1000003
    }
}
println "groovy: checksum $sum"
