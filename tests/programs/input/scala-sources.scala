// Compiled by the Scala compiler under test: its output, not its behaviour, is what counts.
package sample

import scala.annotation.tailrec
import scala.collection.mutable

sealed trait Expr
case class Num(value: Double) extends Expr
case class Var(name: String) extends Expr
case class Bin(op: Char, left: Expr, right: Expr) extends Expr
case class Let(name: String, value: Expr, body: Expr) extends Expr

class ParseError(message: String, val at: Int) extends Exception(message)

class Parser(text: String) {
  private var at = 0
  private def peek: Char = if (at < text.length) text.charAt(at) else '\u0000'
  private def skip(): Unit = while (peek.isWhitespace) at += 1
  def parse(): Expr = { val e = sum(); skip(); if (at < text.length) throw new ParseError("trailing", at); e }
  private def sum(): Expr = {
    var left = product()
    skip()
    while (peek == '+' || peek == '-') { val op = peek; at += 1; left = Bin(op, left, product()); skip() }
    left
  }
  private def product(): Expr = {
    var left = atom()
    skip()
    while (peek == '*' || peek == '/') { val op = peek; at += 1; left = Bin(op, left, atom()); skip() }
    left
  }
  private def atom(): Expr = {
    skip()
    peek match {
      case '(' => at += 1; val e = sum(); skip(); if (peek != ')') throw new ParseError("expected )", at); at += 1; e
      case c if c.isDigit => val start = at; while (peek.isDigit || peek == '.') at += 1; Num(text.substring(start, at).toDouble)
      case c if c.isLetter => val start = at; while (peek.isLetterOrDigit) at += 1; Var(text.substring(start, at))
      case c => throw new ParseError(s"unexpected '$c'", at)
    }
  }
}

object Simplify {
  def apply(e: Expr): Expr = e match {
    case Bin('+', Num(0), r) => apply(r)
    case Bin('+', l, Num(0)) => apply(l)
    case Bin('*', Num(1), r) => apply(r)
    case Bin('*', l, Num(1)) => apply(l)
    case Bin('*', Num(0), _) | Bin('*', _, Num(0)) => Num(0)
    case Bin(op, l, r) =>
      val (sl, sr) = (apply(l), apply(r))
      if (sl == l && sr == r) e else apply(Bin(op, sl, sr))
    case Let(n, v, b) => Let(n, apply(v), apply(b))
    case other => other
  }
}

object Eval {
  def apply(e: Expr)(implicit env: Map[String, Double]): Either[String, Double] = e match {
    case Num(v) => Right(v)
    case Var(n) => env.get(n).toRight(s"unbound $n")
    case Let(n, v, b) => for { x <- apply(v); y <- apply(b)(env + (n -> x)) } yield y
    case Bin(op, l, r) =>
      for {
        x <- apply(l)
        y <- apply(r)
        z <- op match {
          case '+' => Right(x + y)
          case '-' => Right(x - y)
          case '*' => Right(x * y)
          case '/' => if (y == 0) Left("division by zero") else Right(x / y)
        }
      } yield z
  }
}

class LruCache[K, V](size: Int) {
  private val map = mutable.LinkedHashMap.empty[K, V]
  def getOrElseUpdate(k: K)(v: => V): V = synchronized {
    map.remove(k) match {
      case Some(x) => map(k) = x; x
      case None => val x = v; map(k) = x; if (map.size > size) map -= map.head._1; x
    }
  }
}

trait Monoid[A] { def zero: A; def plus(a: A, b: A): A }
object Monoid {
  implicit val ints: Monoid[Int] = new Monoid[Int] { def zero = 0; def plus(a: Int, b: Int): Int = a + b }
  implicit def lists[A]: Monoid[List[A]] = new Monoid[List[A]] { def zero = Nil; def plus(a: List[A], b: List[A]): List[A] = a ::: b }
  implicit def maps[K, V](implicit m: Monoid[V]): Monoid[Map[K, V]] = new Monoid[Map[K, V]] {
    def zero = Map.empty
    def plus(a: Map[K, V], b: Map[K, V]): Map[K, V] = b.foldLeft(a) { case (acc, (k, v)) => acc.updated(k, m.plus(acc.getOrElse(k, m.zero), v)) }
  }
  def sum[A](xs: Iterable[A])(implicit m: Monoid[A]): A = xs.foldLeft(m.zero)(m.plus)
}

object Main {
  @tailrec def gcd(a: Long, b: Long): Long = if (b == 0) a else gcd(b, a % b)
  lazy val table: Vector[Int] = (for (i <- 1 to 20; j <- 1 to i if gcd(i, j) == 1) yield i * j).toVector
  def main(args: Array[String]): Unit = {
    val cache = new LruCache[String, Either[String, Double]](16)
    implicit val env: Map[String, Double] = Map("x" -> 2.0)
    for (a <- args) try {
      println(cache.getOrElseUpdate(a)(Eval(Simplify(new Parser(a).parse()))))
    } catch { case e: ParseError => println(s"${e.getMessage} at ${e.at}") } finally println(Monoid.sum(Seq(Map(a -> 1), Map(a -> table.sum))))
  }
}
